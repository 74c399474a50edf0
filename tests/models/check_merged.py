"""Compares the weights that runs with merged models leave with those that the public code makes of the same tasks: MagMax's
repository (maximum magnitude, sum, TIES) and ConDU's (unifying). By hand, since it runs their code; needs torch and two clones:

    python tests/models/check_merged.py --mtil build/mtil --work /tmp/merged --magmax CLONE --condu CLONE

Three tasks are trained alone and in sequence, with the weights after each; their public merge is compared with the weights of the
method's run after each task. Prints for each the largest difference between any two values, as a share of the largest change of a
weight, and how many are further than 1e-4 of it apart; exits 0 when none is. In TIES, values are left out that are as large as the
threshold of a task's trimming, of which the public code keeps all, and those that cancel, to which it gives a sign.
"""
import argparse
import importlib.util
import json
import os
import subprocess
import sys

import torch

TASKS = 3
SHARE = 1e-4  # of the largest change: rounding of θ_0 + change
RUN = ["mini_continual_ft", "data.order=dtd,eurosat,mnist", "training.iterations=4", "training.warmup=1", "training.batch=8", "run.checkpoints=all",
       "evaluation.per_image=none", "-q"]


def read(path):
    """Tensors of a safetensors file of floats, in the order of their names."""
    with open(path, "rb") as file:
        content = file.read()
    size = int.from_bytes(content[:8], "little")
    tensors = {}
    for name, entry in sorted(json.loads(content[8:8 + size]).items()):
        if name != "__metadata__" and entry["dtype"] == "F32":
            first, last = entry["data_offsets"]
            values = torch.frombuffer(bytearray(content[8 + size + first:8 + size + last]), dtype=torch.float32)
            tensors[name] = values.reshape(entry["shape"])
    return tensors


def run(arguments, name, *overrides):
    """The weights after each task."""
    folder = os.path.join(arguments.work, name)
    subprocess.run([arguments.mtil, "run", *RUN, f"data.root={arguments.work}/data", f"run.folder={folder}",
                    f"run.database={folder}.db", *overrides], check=True, stdout=subprocess.DEVNULL)
    runs = [os.path.join(folder, inner, "seed1") for inner in os.listdir(folder)]
    assert len(runs) == 1, runs
    return [read(os.path.join(runs[0], f"task{t:02}.weights.safetensors")) for t in range(TASKS)]


def module(path):
    spec = importlib.util.spec_from_file_location(os.path.basename(path)[:-3], path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def compare(what, initial, found, expected_change, scale, left_out=None):
    apart = count = 0
    worst = 0.0
    largest = max(float(change.abs().max()) for change in expected_change.values())
    for name, change in expected_change.items():
        difference = (found[name] - (initial[name] + scale * change)).abs() / largest
        if left_out is not None:
            difference = difference[left_out[name] == 0]
        worst = max(worst, float(difference.max())) if difference.numel() else worst
        apart += int((difference > SHARE).sum())
        count += difference.numel()
    print(f"{what:42} {'FAILED' if apart else 'ok':8} largest difference {worst:.2e}, {apart} of {count} apart")
    return apart == 0


def trimming_is_open(flat):
    """1 where a value is as large as the smallest that its task keeps, or where those that are kept cancel."""
    least = flat.abs().kthvalue(flat.shape[1] - int(0.2 * flat.shape[1]), dim=1, keepdim=True)[0]
    kept = flat * (flat.abs() >= least)
    return ((flat.abs() == least).any(0) | ((kept.sum(0) == 0) & (kept != 0).any(0))).float()


def main():
    parser = argparse.ArgumentParser()
    for name in ("mtil", "work", "magmax", "condu"):
        parser.add_argument(f"--{name}", required=True)
    arguments = parser.parse_args()
    task_vectors = module(os.path.join(arguments.magmax, "src/merging/task_vectors.py"))
    ties = module(os.path.join(arguments.magmax, "src/merging/ties.py"))
    delta_models = module(os.path.join(arguments.condu, "src/delta_models.py"))
    subprocess.run([arguments.mtil, "data", "mini", os.path.join(arguments.work, "data"), "-q"], check=True)
    initial = read(os.path.join(os.path.dirname(arguments.mtil), "weights/mini-clip.safetensors"))
    trained = {"initial": run(arguments, "alone", "method.name=finetune"), "previous": run(arguments, "in_sequence")}
    changes = {start: [{name: after[name] - initial[name] for name in after} for after in weights]
               for start, weights in trained.items()}
    vectors = {start: [task_vectors.TaskVector(vector=change) for change in of] for start, of in changes.items()}
    good = True
    for start in ("previous", "initial"):
        found = {method: run(arguments, f"{method}_{start}", f"method.name={method}", f"method.start={start}",
                             f"method.scale={scale}")
                 for method, scale in (("mag_max", 0.5), ("task_arithmetic", 0.4), ("ties", 1))}
        for t in range(TASKS):
            of = vectors[start][:t + 1]
            after = f"from the {start}, task {t}"
            good &= compare(f"mag_max {after}", initial, found["mag_max"][t], task_vectors.merge_max_abs(of).vector, 0.5)
            good &= compare(f"task_arithmetic {after}", initial, found["task_arithmetic"][t], sum(of).vector, 0.4)
            flat = torch.vstack([ties.state_dict_to_vector(vector.vector) for vector in of])
            merged = ties.merge_methods("topk", flat, reset_thresh=20, resolve_method="mass", merge_func="dis-mean")
            merged = ties.vector_to_state_dict(merged, of[0].vector)
            left_out = ties.vector_to_state_dict(trimming_is_open(flat), of[0].vector)
            print(f"  {int(trimming_is_open(flat).sum())} values are left out of")
            good &= compare(f"ties {after}", initial, found["ties"][t], merged, 1, left_out)
    found = run(arguments, "condu", "method.name=condu")
    rebuilt = []
    for t in range(TASKS):
        deltas = [delta_models.DeltaModel(delta_model=delta) for delta in rebuilt + [changes["initial"][t]]]
        unified, masks, factors = delta_models.unify_delta_models(deltas, "cpu")
        rebuilt = [{name: unified[name] * masks[name][m] * factors[m] for name in unified} for m in range(t + 1)]
        good &= compare(f"condu, task {t}", initial, found[t], unified, 1)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

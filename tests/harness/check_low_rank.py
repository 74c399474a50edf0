"""Compares o_lora, inf_lora and sd_lora with the public code of their papers, on random tensors. By hand; needs torch, numpy,
safetensors and the files of the public code:

    python tests/harness/check_low_rank.py --program build/tests/low_rank --work /tmp/low_rank \\
        --olora O-LoRA/src/uie_trainer_lora.py --inflora InfLoRA/methods/inflora.py --sdlora SD-Lora-CL/backbone/lora.py

Read at cmnfriend/O-LoRA, liangyanshuo/InfLoRA and WuYichen-97/SD-Lora-CL. The lines of the public code run as they are. Exits 0 only
when every difference is below its tolerance. InfLoRA's complement (DualGPM, once the space has more than half of the
dimensions) is compared as the projector that it stands for.
"""
import argparse
import ast
import math
import os
import subprocess
import sys
import textwrap
import types

import numpy
import torch
from safetensors.numpy import load_file, save_file

TASKS, N, RANK, SAMPLES = 8, 24, 4, 10


def source_of(path, name):
    text = open(path).read()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == name:
            return textwrap.dedent(ast.get_source_segment(text, node, padded=True))
    sys.exit(f"{path}: no {name}")


def inf_lora(path, tensors, shares):
    """The projector after each task, and what A is designed from before it."""
    scope = {"np": numpy}
    exec(source_of(path, "update_DualGPM"), scope)
    learner = types.SimpleNamespace(lamb=0.6, lame=1, total_sessions=TASKS, feature_list=[], project_type=[])
    expected = {}
    for t in range(TASKS):
        matrix = tensors[f"covariance.{t}"]
        if t > 0:  # as _train does with feature_mat
            product = learner.feature_list[0] @ learner.feature_list[0].T @ matrix
            matrix = matrix - product if learner.project_type[0] == "remove" else product
        a = numpy.linalg.svd(matrix)[0][:, :RANK].T / math.sqrt(3)
        expected[f"inf.a.{t}"] = a.T @ a
        learner._cur_task = t
        scope["update_DualGPM"](learner, [tensors[f"after.{t}"]])
        projector = learner.feature_list[0] @ learner.feature_list[0].T
        retained = learner.project_type[0] == "retain"
        expected[f"inf.projector.{t}"] = numpy.eye(N) - projector if retained else projector
        shares[t] = (learner.lame - learner.lamb) * t / TASKS + learner.lamb
    print("InfLoRA kept the", "complement" if retained else "space", "at the end")
    return expected


def o_lora(path, tensors):
    text = open(path).read()
    lines = text[text.index("orthogonal_loss = 0."):text.index("# l2-normalization")]
    earlier = torch.cat([torch.tensor(tensors[f"sd.a.{t}"]) for t in range(TASKS - 1)])
    new = torch.tensor(tensors[f"sd.a.{TASKS - 1}"], requires_grad=True)
    model = types.SimpleNamespace(named_parameters=lambda: [("q.lora_A", earlier), ("q.loranew_A", new)])
    scope = {"torch": torch, "self": types.SimpleNamespace(model=model)}
    exec(textwrap.dedent("        " + lines), scope)
    loss = 0.5 * scope["orthogonal_loss"]
    loss.backward()
    return {"o.loss.0": loss.detach().numpy().reshape(1, 1), "o.gradient.0": new.grad.numpy()}


def sd_lora(path, tensors):
    scope = {"torch": torch, "nn": torch.nn, "Parameter": torch.nn.Parameter}
    exec(source_of(path, "_LoRA_qkv_timm_train"), scope)
    exec(source_of(path, "ParameterWrapper"), scope)
    torch.nn.Module.cuda = lambda module: module

    def linear(weight):
        layer = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=False)
        layer.weight.data = torch.tensor(weight)
        return layer

    halves = {"a": {}, "b": {}}
    zero = (linear(numpy.zeros((RANK, N), "f4")), linear(numpy.zeros((N, RANK), "f4") + 1))
    for t in range(TASKS - 1):  # query and value; the value's direction is multiplied by 0
        a, b = linear(tensors[f"raw.a.{t}"]), linear(tensors[f"raw.b.{t}"].T.copy())
        halves["a"][f"saved_A_{t}"], halves["b"][f"saved_B_{t}"] = [a, linear(tensors[f"raw.a.{t}"])], [b, zero[1]]
    last = TASKS - 1
    wrap = [scope["ParameterWrapper"](torch.tensor([float(v)])) for v in tensors["sd.m"]]
    layer = scope["_LoRA_qkv_timm_train"](
        linear(tensors["sd.weight"]), linear(tensors[f"sd.a.{last}"]), linear(tensors[f"sd.b.{last}"].T.copy()), zero[0],
        zero[1], last, halves["a"], halves["b"], 0, RANK, torch.nn.ModuleList(wrap[last:]), torch.nn.ModuleList(wrap[:last]))
    with torch.no_grad():
        y = layer(torch.tensor(tensors["sd.x"]).reshape(1, SAMPLES, N)).reshape(SAMPLES, 3 * N).numpy()
    return {"sd.y.0": y[:, :N]}


def main():
    parser = argparse.ArgumentParser()
    for word in ["program", "work", "olora", "inflora", "sdlora"]:
        parser.add_argument("--" + word, required=True)
    given = parser.parse_args()
    os.makedirs(given.work, exist_ok=True)
    random = numpy.random.default_rng(1)
    tensors = {"shares": numpy.zeros(TASKS), "sd.x": random.normal(size=(SAMPLES, N)).astype("f4"),
               "sd.weight": random.normal(size=(3 * N, N)).astype("f4"), "sd.m": random.normal(size=TASKS).astype("f4")}
    for t in range(TASKS):
        for name in ["covariance", "after"]:
            x = random.normal(size=(40, N)) @ numpy.diag(numpy.exp(-random.permutation(N) / 16))
            tensors[f"{name}.{t}"] = x.T @ x / 40
        for name, shape in [("a", (RANK, N)), ("b", (RANK, N))]:
            raw = random.normal(size=shape).astype("f4")
            tensors[f"raw.{name}.{t}"] = raw
            tensors[f"sd.{name}.{t}"] = raw / numpy.linalg.norm(raw) if t + 1 < TASKS else raw
    expected = inf_lora(given.inflora, tensors, tensors["shares"])
    expected |= o_lora(given.olora, tensors) | sd_lora(given.sdlora, tensors)
    files = [os.path.join(given.work, name) for name in ["in.safetensors", "out.safetensors"]]
    save_file(tensors, files[0])
    subprocess.run([given.program, *files], check=True)
    found, failed = load_file(files[1]), False
    for name, value in expected.items():
        own = found[name][:, :N] if name == "sd.y.0" else found[name]
        apart = numpy.abs(own - value).max() / max(numpy.abs(value).max(), 1e-30)
        failed |= not apart < (1e-9 if name.startswith("inf") else 1e-5)
        print(f"{name:18} {apart:.2e} of its largest value")
    return failed


if __name__ == "__main__":
    sys.exit(main())

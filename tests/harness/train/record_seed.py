"""Records what SEED's public code computes, and the gradients of deep mutual learning: the fixture of test_seed.c.

    git clone https://github.com/grypesc/SEED
    python tests/harness/train/record_seed.py SEED tests/fixtures/seed.safetensors

approach/seed.py and approach/gmm.py run unchanged, in f32, on features that the test draws again: two experts, of which the second
knows the classes from the second task on, and three tasks of two classes. The file has the experts' overlaps in the last task, and
the confidences of test images with the task given and without. DML's are torch's gradients of the paper's two losses, whose public
code is of another framework. Needs torch alone.
"""
import pathlib
import sys
import types

import torch

sys.path.append(str(pathlib.Path(__file__).parents[2]))
from recording import draw, write

WIDTH, ROWS, TESTS, CLASSES, PER_TASK, EXPERTS, TAU = 5, 24, 7, 6, 2, 2, 3.0
BATCH, LABELS = 4, [2, 0, 1, 2]


def public_code(folder):
    package = types.ModuleType("approach")  # without its __init__; what seed.py imports besides gmm is not called
    package.__path__ = [f"{folder}/src/approach"]
    sys.modules["approach"] = package
    for name, members in {"mvgb": ["ClassMemoryDataset", "ClassDirectoryDataset"],
                          "incremental_learning": ["Inc_Learning_Appr"]}.items():
        module = types.ModuleType(f"approach.{name}")
        for member in members:
            setattr(module, member, type(member, (), {}))
        sys.modules[module.__name__] = module
    from approach import gmm, seed
    return gmm.GaussianMixture, seed.Appr


def watched(function, call):
    """What a function of torch is given while the call runs."""
    seen, original = [], getattr(torch, function)
    setattr(torch, function, lambda x, *rest, **named: (seen.append(x.clone()), original(x, *rest, **named))[1])
    call()
    setattr(torch, function, original)
    return seen


def experts(folder, expected):
    mixture, approach = public_code(folder)
    fits = []
    for expert in range(EXPERTS):
        fits.append([])
        for _ in range(PER_TASK * expert, CLASSES):
            rows = draw(ROWS, WIDTH, scale=2.0) + draw(1, WIDTH, scale=1.0)
            fits[expert].append(mixture(1, WIDTH, covariance_type="full", eps=1e-8))
            fits[expert][-1].fit(rows, delta=1e-3, n_iter=100)
    tests = draw(TESTS, EXPERTS, WIDTH, scale=3.0)
    appr = approach.__new__(approach)
    appr.max_experts, appr.tau, appr.device, appr.experts_distributions = EXPERTS, TAU, "cpu", fits
    tasks = CLASSES // PER_TASK
    appr.model = types.SimpleNamespace(taskcla=[(t, PER_TASK) for t in range(tasks)],
                                       task_offset=[PER_TASK * t for t in range(tasks + 1)])
    aware, agnostic = watched("argmax", lambda: appr.predict_class_bayes(1, tests))
    expected["aware"], expected["agnostic"] = aware, agnostic
    appr.create_distributions = lambda *ignored: None  # those of the last task are there
    expected["overlap"], = watched("argmax", lambda: appr._choose_backbone_to_finetune(tasks - 1, None, None))


def mutual(expected):
    scores = [draw(BATCH, 3, scale=6.0).requires_grad_() for _ in range(2)]
    for own, other in (scores, scores[::-1]):
        loss = torch.nn.functional.cross_entropy(own, torch.tensor(LABELS)) + torch.nn.functional.kl_div(
            own.log_softmax(1), other.detach().softmax(1), reduction="batchmean")
        loss.backward()
    expected["mutual"] = torch.stack([one.grad for one in scores])


def main(folder, path):
    expected = {}
    experts(folder, expected)
    mutual(expected)
    write(path, "https://github.com/grypesc/SEED", expected)


main(*sys.argv[1:])

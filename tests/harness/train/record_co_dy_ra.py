"""Records CoDyRA by the formulas of its public code: the fixture of test_co_dy_ra.c.

    python tests/harness/train/record_co_dy_ra.py tests/fixtures/co_dy_ra.safetensors

The formulas are those of github.com/Artificer-AI-Lab/CoDyRA (c1691e4): `layer` is codyra_Linear.forward of loralib/codyra.py and the
weight that its increment_task leaves, `training` the thresholds and their effect in train_model of models/codyra.py, there with the
500 iterations and the greatest threshold of runner_codyra.sh. Gradients are torch's. Needs torch and numpy.
"""
import pathlib
import sys

import numpy
import torch

sys.path.append(str(pathlib.Path(__file__).parents[2]))
from recording import draw, write

ROWS, IN, OUT, RANK = 6, 8, 12, 4
ITERATIONS, DENSE_SHARE, LEVELS, MOST = 500, 0.5, 50, 0.005


def layer(tensors):
    names = {"x": (ROWS, IN), "weight": (OUT, IN), "a": (RANK, IN), "b": (OUT, RANK), "gate": (1, RANK), "dy": (ROWS, OUT)}
    for name, shape in names.items():
        tensors[name] = draw(*shape, scale=2.0).requires_grad_()
    x, weight, a, b, gate, dy = [tensors[name] for name in names]
    y = x @ weight.T + (x @ a.T).mul(gate) @ b.T
    y.backward(dy.detach())
    merged = weight + (b * gate) @ a
    tensors |= {"y": y, "dx": x.grad, "da": a.grad, "db": b.grad, "dgate": gate.grad, "merged": merged}
    tensors["b"], tensors["db"] = b.T, b.grad.T  # as here, a row of the file for each rank


def training(tensors):
    """The threshold after each iteration; importances before and after the last of them."""
    lambdas, level, threshold = numpy.linspace(0, MOST, LEVELS), 0, 0.0
    dense = DENSE_SHARE * ITERATIONS
    every = int((ITERATIONS - dense) // LEVELS)
    thresholds = []
    for iteration in range(ITERATIONS):
        if iteration >= dense and iteration % every == 0:
            level += 1
            threshold = lambdas[min(LEVELS - 1, level)]
        thresholds.append(threshold if iteration > dense else 0.0)
    before = draw(64, scale=8 * MOST)
    after = before.clone()
    after[after > threshold] -= threshold
    after[after < -threshold] += threshold
    after[abs(after) < threshold] = 0.0
    tensors |= {"thresholds": torch.tensor(thresholds), "before": before, "after": after}


def main(path):
    tensors = {}
    layer(tensors)
    training(tensors)
    write(path, "https://github.com/Artificer-AI-Lab/CoDyRA", tensors)


main(*sys.argv[1:])

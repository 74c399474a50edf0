"""Records what MINGLE's public code computes: the fixture of test_mingle.c.

    git clone https://github.com/zihuanqiu/MINGLE
    python tests/harness/train/record_mingle.py MINGLE tests/fixtures/mingle.safetensors

LoRAMoE of fusion_bench/models/lora_moe.py (928ed62) runs as it is, on samples of one token each, whose gates are those of a token:
outputs and gradients with two experts, and project_gradient in three steps. So does construct_lora of
fusion_bench/method/mingle/mingle.py, of a change and the earlier ones, with all singular values. Needs torch alone.
"""
import ast
import functools
import math
import pathlib
import sys
import textwrap
import types
import typing

import torch

sys.path.append(str(pathlib.Path(__file__).parents[2]))
from recording import draw, write

ROWS, IN, OUT, RANK, STEPS, DIRECTIONS = 6, 8, 12, 3, 3, 4


def sources(folder, path, names, scope):
    text = (pathlib.Path(folder) / path).read_text()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name in names:
            exec(textwrap.dedent(ast.get_source_segment(text, node, padded=True)), scope)
    return [scope[name] for name in names]


def public_code(folder):
    functional_call = (torch.func if hasattr(torch, "func") else torch.nn.utils.stateless).functional_call
    scope = {"torch": torch, "nn": torch.nn, "Tensor": torch.Tensor, "List": typing.List, "StateDictType": dict, "math": math,
             "functools": functools, "functional_call": functional_call, "svd": full_svd}
    path = "fusion_bench/models/lora_moe.py"
    mixture = sources(folder, path, ["Depth_1_Gate", "construct_weight_ensembling_gate", "LoRAMoE"], scope)[-1]
    return mixture, *sources(folder, "fusion_bench/method/mingle/mingle.py", ["LoRA", "construct_lora"], scope)


def full_svd(w):
    u, s, vh = torch.linalg.svd(w, full_matrices=True)
    return u, s, vh.T


def layer(mixture, lora, tensors):
    base = torch.nn.Linear(IN, OUT, bias=False)
    base.weight.data = draw(OUT, IN, scale=2.0)
    experts = [lora(IN, OUT, RANK) for _ in range(2)]
    for expert in experts:
        expert.A.data, expert.B.data = draw(RANK, IN, scale=2.0), draw(OUT, RANK, scale=2.0)
    moe = mixture(IN, base, experts[:1], batch_first=True)
    moe.gate.trainable_fc.weight.data, moe.gate.trainable_fc.bias.data = draw(1, IN, scale=2.0), draw(1, scale=2.0)
    moe.add_expert(experts[1:])
    old, new = moe.gate.frozen_fc, moe.gate.trainable_fc
    new.weight.data, new.bias.data = draw(1, IN, scale=2.0), draw(1, scale=2.0)
    x, dy = draw(ROWS, IN, scale=2.0).requires_grad_(), draw(ROWS, OUT, scale=2.0)
    y = moe(x.unsqueeze(1)).squeeze(1)
    y.backward(dy)
    tensors |= {"weight": base.weight, "x": x, "dy": dy, "y": y, "dx": x.grad, "dw": new.weight.grad, "dbias": new.bias.grad}
    bias = torch.zeros(2, 1, OUT)  # as here: the gate's w is the last row of A, its b the first value of that of B
    bias[:, 0, 0] = torch.stack([old.bias, new.bias]).detach()[:, 0]
    tensors["a"] = torch.cat([torch.cat([e.A, g.weight]) for e, g in zip(experts, [old, new])])
    tensors["b"] = torch.cat([torch.cat([e.B.T, row]) for e, row in zip(experts, bias)])


def constraint(mixture, tensors):
    module = types.SimpleNamespace(U=torch.linalg.qr(draw(IN, DIRECTIONS, scale=2.0))[0])
    module.register_buffer = lambda name, value: setattr(module, name, value)
    gradients = draw(STEPS, 1, IN, scale=2.0)
    left = [mixture.project_gradient(module, gradient, beta=0.9, gamma=2, debug=False) for gradient in gradients]
    tensors |= {"directions": module.U.T, "gradients": gradients, "constrained": torch.cat(left), "interference": module.h}


def separation(lora, construct, tensors):
    start, change, merged = [draw(OUT, IN, scale=2.0) for _ in range(3)]
    made = construct(None, start, start + change, IN, "cpu", merged)
    tensors |= {"change": change, "merged": merged, "separated": made.get_delta()}


def main(folder, path):
    mixture, lora, construct = public_code(folder)
    tensors = {}
    layer(mixture, lora, tensors)
    constraint(mixture, tensors)
    with torch.no_grad():
        separation(lora, construct, tensors)
    write(path, "https://github.com/zihuanqiu/MINGLE", tensors)


main(*sys.argv[1:])

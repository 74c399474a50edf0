"""Records what one block of DIKI's public code computes: the fixture of tests/adapters/test_prefixes.c.

    git clone https://github.com/lloongx/DIKI
    python tests/adapters/record_prefixes.py DIKI tests/fixtures/prefixes.safetensors

The block, clip/model.py's ResidualAttentionBlock with clip/attention.py, runs unchanged, in f32. Weights and inputs are numbers that
the test draws again; the file has the outputs and gradients, with a causal mask and without one, and those of the images beside
which prefixes are weighted. Needs torch alone; two functions that came with torch 2 are added to an older one.
"""
import math
import pathlib
import sys
import types

import torch

sys.path.append(str(pathlib.Path(__file__).parents[1]))
import recording
from recording import draw, write

WIDTH, HEADS, POSITIONS, BATCH, TASKS, LENGTH = 128, 2, 7, 3, 3, 4
ROUTERS, WEIGHTS = [1, 0, 1], [0.25, 1.0, 0.75]


recording.complete_torch()


def public_block(folder):
    package = types.ModuleType("clip")  # without its __init__, which reads images and files
    package.__path__ = [f"{folder}/clip"]
    sys.modules["clip"] = package
    from clip.model import ResidualAttentionBlock
    return ResidualAttentionBlock


def main(folder, path):
    expected = {}
    block = public_block(folder)(WIDTH, HEADS, None, True, False, 0, {"pool_size": TASKS, "vision_ctx": LENGTH})
    order = ["attn.in_proj_weight", "attn.in_proj_bias", "attn.out_proj.weight", "attn.out_proj.bias", "ln_1.weight",
             "ln_1.bias", "ln_2.weight", "ln_2.bias", "mlp.c_fc.weight", "mlp.c_fc.bias", "mlp.c_proj.weight",
             "mlp.c_proj.bias", "attn.prefix_pool"]
    state = {name: draw(*block.state_dict()[name].shape, scale=2.0 if "ln" in name or "pool" in name else 0.125)
             for name in order}
    block.float().load_state_dict(state)
    x, slope = draw(BATCH, POSITIONS, WIDTH, scale=2.0), draw(BATCH, POSITIONS, WIDTH, scale=2.0)
    for kind in ("full", "causal", "weighted"):
        block.attn_mask = torch.full((POSITIONS, POSITIONS), -math.inf).triu(1) if kind == "causal" else None
        weights = torch.tensor(WEIGHTS) if kind == "weighted" else None
        inputs = x.clone().requires_grad_()
        block.zero_grad()
        out = block(inputs.permute(1, 0, 2), torch.tensor(ROUTERS).unsqueeze(1), weights).permute(1, 0, 2)
        out.backward(slope)
        expected[f"{kind}.out"], expected[f"{kind}.dx"] = out.detach(), inputs.grad
        expected[f"{kind}.dprefix"] = block.attn.prefix_pool.grad.clone()
    write(path, "https://github.com/lloongx/DIKI", expected)


main(*sys.argv[1:])

"""Records what DPW's public code computes: the fixture of test_gated_prefixes.c and test_dpw.c.

    git clone https://github.com/YonseiML/dpw
    /usr/bin/python3 tests/harness/train/record_dpw.py dpw tests/fixtures/dpw.safetensors

The block, clip/model.py's ResidualAttentionBlock with clip/attention.py, and DPW/DPW.py's inter_class_variance run unchanged, with f32
where the code names half precision. Weights and inputs are numbers that the tests draw again. Of each tower's block, the file has
outputs and gradients without dropout, and outputs of samples beside which prefixes are weighted, with a weight that keeps all values and
one that drops some; of the image tower's, too, the moments of scores, and what a task starts with from drawn weights of the attention.
Needs torch alone; two functions that came with torch 2 are added to an older one.
"""
import math
import pathlib
import sys
import types

import torch

sys.path.append(str(pathlib.Path(__file__).parents[2]))
import recording
from recording import draw, write

WIDTH, HEADS, BATCH, TASKS, TASK, LENGTH, RANK, USED = 128, 2, 2, 2, 1, 4, 8, 4
POSITIONS = {"image": 6, "text": 5}
WEIGHTS = {"kept": [0.9, 0.85], "dropped": [0.75, 0.5]}
FINENESS, ATTENTION_HEADS = [0.01, 0.2, 0.3, 0.5, 1.0, 1.9, 2.6], 12
CLASSES, IMAGES, FEATURES = 5, 40, 16

recording.complete_torch()
torch.float16 = torch.float32
torch.Tensor.cuda = lambda self, *ignored, **named: self


def public_code(folder):
    """Without the packages' __init__, which read images and files, and without what is imported and not used here."""
    members = {"clip": {}, "DPW": {}, "clip.clip": {}, "clip.simple_tokenizer": {"SimpleTokenizer": object}, "tqdm": {"tqdm": None},
               "continuum": {}, "continuum.metrics": {"Logger": None}, "torchinfo": {"summary": None},
               "DPW.utils": {"cosine_loss_3d": None, "cal_MTIL_metrics": None, "build_cosine_scheduler": None},
               "DPW.datasets": {"parse_sample": lambda sample, **ignored: (*sample, None)}}
    for name, names in members.items():
        sys.modules[name] = types.ModuleType(name)
        vars(sys.modules[name]).update(names)
    sys.modules["clip"].__path__, sys.modules["DPW"].__path__ = [f"{folder}/clip"], [f"{folder}/DPW"]
    sys.modules["clip"].clip = sys.modules["clip.clip"]
    import clip.attention
    import clip.model
    import DPW.DPW
    return clip.model.ResidualAttentionBlock, clip.attention.Adapter, DPW.DPW.DPW


def public_block(Block, Adapter, tower):
    block = Block(WIDTH, HEADS, None, True, tower == "text", 0, {"pool_size": TASKS, "vision_ctx": LENGTH, "language_ctx": LENGTH}).float()
    state = dict(block.named_parameters())
    for name in ["attn.in_proj_weight", "attn.in_proj_bias", "attn.out_proj.weight", "attn.out_proj.bias", "ln_1.weight", "ln_1.bias",
                 "ln_2.weight", "ln_2.bias", "mlp.c_fc.weight", "mlp.c_fc.bias", "mlp.c_proj.weight", "mlp.c_proj.bias"]:
        state[name].data.copy_(draw(*state[name].shape, scale=2.0 if "ln" in name else 0.25))
    attn = block.attn
    attn.text_layer = tower == "text"  # the public code tells it by 768 columns
    attn.dpw_adapter = torch.nn.ModuleList([Adapter(WIDTH, WIDTH, bottleneck=RANK, lr=0.05, dropout=0.1, in_proj_weight=attn.in_proj_weight)
                                            for _ in range(TASKS)])
    for task in range(TASKS):
        block.init_attn(USED / HEADS, task)
    return block.eval()


def flat(scores):
    """[heads, …, length] as […, heads · length]"""
    return scores.permute(1, 0, 2).flatten(1)


def record_start(attn, expected):
    expected["start.scores"], expected["start.values"] = flat(attn.dpw_attn[TASK]).t(), attn.prefix_pool[TASK, 0].clone()
    expected["start.down"] = attn.dpw_adapter[TASK].fixed_down.t()


def record_heads(attn, expected):
    attn.num_heads = ATTENTION_HEADS
    for fineness in FINENESS:
        attn.init_attn(fineness, TASK)
    expected["start.heads"] = torch.tensor(attn.prefix_head[-len(FINENESS):]).float()
    expected["start.fineness"] = torch.tensor(FINENESS)


def place(attn, positions):
    scores, values = draw(USED * LENGTH, WIDTH, scale=0.5), draw(LENGTH, WIDTH, scale=2.0)
    bias, up, up_bias = draw(positions, USED, LENGTH, scale=4.0), draw(WIDTH, RANK, scale=4.0), draw(WIDTH, scale=4.0)
    adapter = attn.dpw_adapter[TASK]
    attn.dpw_attn[TASK].data = scores.view(USED, LENGTH, WIDTH).transpose(1, 2).contiguous()
    attn.dpw_attn_bias[TASK].data = bias.transpose(0, 1).contiguous()
    attn.prefix_pool.data[TASK, 0] = values
    adapter.lora[1].weight.data, adapter.lora[1].bias.data = up, up_bias
    adapter.fixed_down = draw(RANK, WIDTH, scale=0.5).t().contiguous()
    return adapter.lora[1]


def record_block(block, tower, expected):
    attn, positions = block.attn, POSITIONS[tower]
    up = place(attn, positions)
    x, slope = draw(BATCH, positions, WIDTH, scale=2.0), draw(BATCH, positions, WIDTH, scale=2.0)
    block.attn_mask = torch.full((positions,) * 2, -math.inf).triu(1) if tower == "text" else None
    run = lambda x, weights: block(x.transpose(0, 1), {"is_last": True}, torch.tensor([[TASK]]), weights)[0].transpose(0, 1)
    inputs = x.clone().requires_grad_()
    out = run(inputs, None)
    out.backward(slope)
    gradients = {"out": out, "dx": inputs.grad, "dscores": flat(attn.dpw_attn[TASK].grad).t(), "dvalues": attn.prefix_pool.grad[TASK, 0],
                 "dbias": flat(attn.dpw_attn_bias[TASK].grad), "dup": up.weight.grad, "dup_bias": up.bias.grad}
    if tower == "image":
        gradients.update(mean=attn.means[TASK].flatten(), variance=attn.vars[TASK].flatten())
    for kind, weights in WEIGHTS.items():
        with torch.no_grad():
            gradients[kind] = run(x, torch.tensor(weights))
    expected.update({f"{tower}.{name}": tensor for name, tensor in gradients.items()})


class Prompts:
    def __call__(self):
        return None, None


def record_fineness(Method, expected):
    recording.drawn = 0
    features, texts = draw(IMAGES, FEATURES, scale=2.0), draw(CLASSES, FEATURES, scale=2.0)
    labels = torch.arange(IMAGES) % CLASSES
    features += texts[labels] * 0.5
    method, prompts = Method.__new__(Method), Prompts()
    prompts.fixed_embeddings, method.device = texts, "cpu"
    method.model_wo_dp = types.SimpleNamespace(prompt_processor=prompts, image_encoder_ori=lambda x: (x, None), dtype=torch.float32)
    batches = [(features[i:i + 16], labels[i:i + 16]) for i in range(0, IMAGES, 16)]
    expected["fineness"] = torch.tensor([method.inter_class_variance(batches, 0, None)])


def main(folder, path):
    Block, Adapter, Method = public_code(folder)
    expected = {}
    for tower in POSITIONS:
        block = public_block(Block, Adapter, tower)
        if tower == "image":
            record_start(block.attn, expected)
        record_block(block, tower, expected)
    record_heads(block.attn, expected)
    record_fineness(Method, expected)
    write(path, "https://github.com/YonseiML/dpw", expected)


main(*sys.argv[1:])

"""Times the training step of MoE-Adapters (CVPR 2024) as a PyTorch program computes it, beside tests/bench/step.c.

    python3 tests/bench/step_pytorch.py [--device cpu|cuda] [--precision f32|bf16] [--images N] [--prompts 100] [--experts 55]

Needs PyTorch, and a GPU for cuda. The structure is that of the public implementation: nn.MultiheadAttention, one module per expert
in a Python loop, a dispatcher whose sizes the host waits for, the choices of every sample counted on the host, all 77
positions of each prompt encoded, one AdamW over the trainable tensors. f32 is how it ships (TF32 off, PyTorch's default
for products); bf16 is the same under autocast. Beside it, the evaluation of a plain CLIP image tower, without experts and
wholly in that precision (model.bfloat16()). Weights are random, images and tokens too: that changes no time. On a device
times are means; on a CPU, whose threads are PyTorch's own, the median of some repeats, as of `step`.
"""

import argparse
import collections
import resource
import statistics
import time

import torch
from torch import nn
from torch.nn import functional

TASKS, TOP_K, BOTTLENECK, SCALE, DROPOUT = 11, 2, 64, 0.1, 0.1
EMBED, CONTEXT, VOCABULARY, RESOLUTION, PATCH, END = 512, 77, 49408, 224, 16, 49407


class QuickGELU(nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(1.702 * x)


class Expert(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.down = nn.Linear(width, BOTTLENECK)
        self.up = nn.Linear(BOTTLENECK, width)

    def forward(self, x):
        hidden = functional.dropout(functional.relu(self.down(x)), DROPOUT, self.training)
        return SCALE * self.up(hidden)


class Experts(nn.Module):
    """A block's experts and the routers of all tasks; one decision per sample, from its first token."""

    def __init__(self, width, experts):
        super().__init__()
        self.experts = nn.ModuleList(Expert(width) for _ in range(experts))
        self.routers = nn.ParameterList(nn.Parameter(torch.zeros(width, experts)) for _ in range(TASKS))
        self.noise = nn.ParameterList(nn.Parameter(torch.zeros(width, experts)) for _ in range(TASKS))
        self.chosen = collections.Counter()

    def gate(self, first, task):
        clean = first @ self.routers[task]
        deviation = functional.softplus(first @ self.noise[task]) + 0.01
        values, experts = (clean + torch.randn_like(clean) * deviation).topk(TOP_K, dim=1)
        return torch.zeros_like(clean).scatter(1, experts, values.softmax(1).to(clean.dtype))

    def forward(self, x, task):  # [L, B, d]
        length, _, width = x.shape
        gates = self.gate(x[0], task)
        for expert, count in collections.Counter(torch.nonzero(gates)[:, 1].tolist()).items():
            self.chosen[expert] += count
        expert_of, sample_of = torch.nonzero(gates.t(), as_tuple=True)  # by expert, then by sample
        sizes = (gates > 0).sum(0).tolist()
        samples = x.transpose(0, 1).reshape(x.shape[1], -1)
        parts = torch.split(samples[sample_of], sizes)
        outputs = [expert(part.view(part.shape[0], length, width)).reshape(part.shape[0], length * width)
                   for expert, part in zip(self.experts, parts) if part.shape[0] > 0]
        stitched = torch.cat(outputs) * gates[sample_of, expert_of].unsqueeze(1)
        combined = torch.zeros(x.shape[1], length * width, device=x.device)
        combined = combined.index_add(0, sample_of, stitched.float())
        return combined.view(x.shape[1], length, width).transpose(0, 1)


class Block(nn.Module):
    def __init__(self, width, experts, mask):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, width // 64)
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), QuickGELU(), nn.Linear(4 * width, width))
        self.adapters = Experts(width, experts) if experts > 0 else None
        self.mask = mask

    def forward(self, x, task):
        y = self.ln_1(x)
        x = x + self.attention(y, y, y, need_weights=False, attn_mask=self.mask)[0]
        y = x + self.mlp(self.ln_2(x))
        return y if self.adapters is None else y + self.adapters(x, task)


class ImageTower(nn.Module):
    def __init__(self, experts, width=768, blocks=12):
        super().__init__()
        positions = (RESOLUTION // PATCH) ** 2 + 1
        self.patches = nn.Conv2d(3, width, PATCH, PATCH, bias=False)
        self.first = nn.Parameter(torch.randn(width) * 0.02)
        self.position = nn.Parameter(torch.randn(positions, width) * 0.02)
        self.ln_pre, self.ln_post = nn.LayerNorm(width), nn.LayerNorm(width)
        self.blocks = nn.ModuleList(Block(width, experts, None) for _ in range(blocks))
        self.projection = nn.Parameter(torch.randn(width, EMBED) * width ** -0.5)

    def forward(self, images, task):
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.first.expand(x.shape[0], 1, -1), x], dim=1) + self.position
        x = self.ln_pre(x).transpose(0, 1)
        for block in self.blocks:
            x = block(x, task)
        return self.ln_post(x[0]) @ self.projection


class TextTower(nn.Module):
    def __init__(self, experts, device, width=512, blocks=12):
        super().__init__()
        mask = torch.full((CONTEXT, CONTEXT), float("-inf"), device=device).triu(1)
        self.tokens = nn.Embedding(VOCABULARY, width)
        self.position = nn.Parameter(torch.randn(CONTEXT, width) * 0.01)
        self.ln_final = nn.LayerNorm(width)
        self.blocks = nn.ModuleList(Block(width, experts, mask) for _ in range(blocks))
        self.projection = nn.Parameter(torch.randn(width, EMBED) * width ** -0.5)

    def forward(self, tokens, task):
        x = (self.tokens(tokens) + self.position).transpose(0, 1)
        for block in self.blocks:
            x = block(x, task)
        x = self.ln_final(x).transpose(0, 1)
        return x[torch.arange(x.shape[0], device=x.device), tokens.argmax(1)] @ self.projection


class Clip(nn.Module):
    def __init__(self, experts, device):
        super().__init__()
        self.image, self.text = ImageTower(experts), TextTower(experts, device)

    def forward(self, images, tokens, task):
        images = functional.normalize(self.image(images, task), dim=1)
        return 100.0 * images @ functional.normalize(self.text(tokens, task), dim=1).t()


def trained_parameters(model, task):
    """Experts and the task's router; everything else is frozen."""
    trained = []
    for name, parameter in model.named_parameters():
        expert = ".adapters.experts." in name
        router = name.endswith((f".routers.{task}", f".noise.{task}"))
        parameter.requires_grad_(expert or router)
        if parameter.requires_grad:
            trained.append(parameter)
    return trained


def seconds_of(device, repeats, work):
    for _ in range(3 if device == "cuda" else 1):
        work()
    if device == "cpu":
        return statistics.median(seconds_once(work) for _ in range(repeats))
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(repeats):
        work()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / repeats


def seconds_once(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def product_rate(device, kind):
    rows, repeats = (12608, 50) if device == "cuda" else (1024, 80)
    a, b = torch.randn(rows, 768, device=device, dtype=kind), torch.randn(768, 3072, device=device, dtype=kind)
    return 2 * rows * 768 * 3072 / seconds_of(device, repeats, lambda: a @ b)


def seconds_of_step(given, images):
    """A training step, and an evaluation batch."""
    model = Clip(given.experts, given.device).to(given.device).train()
    optimizer = torch.optim.AdamW(trained_parameters(model, task=0), lr=1e-3, weight_decay=0)
    labels = torch.arange(given.images, device=given.device) % given.prompts
    tokens = torch.zeros(given.prompts, CONTEXT, dtype=torch.long, device=given.device)
    tokens[:, :13] = torch.randint(1, 800, (given.prompts, 13), device=given.device)
    tokens[:, 13] = END

    def autocast():
        return torch.autocast(given.device, torch.bfloat16, enabled=given.precision == "bf16")

    def train():
        with autocast():
            loss = functional.cross_entropy(model(images, tokens, 0).float(), labels, label_smoothing=0.2)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    def evaluate():
        with torch.no_grad(), autocast():
            model.image(images, 0)

    step = seconds_of(given.device, given.repeats, train)
    model.eval()
    return step, seconds_of(given.device, given.repeats, evaluate)


def seconds_of_plain(given, kind, images):
    tower, images = ImageTower(experts=0).to(given.device, kind).eval(), images.to(kind)
    with torch.no_grad():
        return seconds_of(given.device, given.repeats, lambda: tower(images, 0))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda")
    parser.add_argument("--precision", choices=["f32", "bf16"], default="f32")
    parser.add_argument("--images", type=int, help="64, on a CPU 16")
    parser.add_argument("--prompts", type=int, default=100)
    parser.add_argument("--experts", type=int, default=55)
    parser.add_argument("--repeats", type=int, help="10, on a CPU 3")
    given = parser.parse_args()
    cuda = given.device == "cuda"
    if cuda and not torch.cuda.is_available():
        raise SystemExit("step_pytorch: PyTorch finds no GPU; --device cpu needs none")
    given.images = given.images or (64 if cuda else 16)
    given.repeats = given.repeats or (10 if cuda else 3)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.manual_seed(1)
    images = torch.randn(given.images, 3, RESOLUTION, RESOLUTION, device=given.device)
    kind = torch.bfloat16 if given.precision == "bf16" else torch.float32
    rate = product_rate(given.device, kind)
    if cuda:
        torch.cuda.reset_peak_memory_stats()
    step, evaluation = seconds_of_step(given, images)
    peak = torch.cuda.max_memory_allocated() if cuda else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    plain = seconds_of_plain(given, kind, images)
    name = torch.cuda.get_device_name() if cuda else f"cpu ({torch.get_num_threads()} threads)"
    print(f"PyTorch {torch.__version__}, {name}, {given.precision}, {given.images} images, "
          f"{given.prompts} prompts of {CONTEXT} tokens, {given.experts} experts")
    print(f"  product rate          {rate / 1e9:.0f} GFLOP/s")
    print(f"  training step         {step:.4f} s")
    print(f"  evaluation            {given.images / evaluation:.1f} images/s")
    print(f"  plain tower           {given.images / plain:.1f} images/s, no experts, wholly in {given.precision}")
    print(f"  peak {'device ' if cuda else ''}memory    {peak / 1e9:.2f} GB")


if __name__ == "__main__":
    main()

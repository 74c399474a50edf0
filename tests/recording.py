"""What scripts that record public code share: numbers that a test draws again, and the file of what was computed.

    sys.path.append("tests")     # from the project's folder
    import recording
    x = recording.draw(3, 5, scale=2.0)
    recording.write(path, "https://github.com/owner/code", {"x": x})
"""
import json
import math

import torch

drawn = 0


def draw(*shape, scale):
    """scale · u, u in ± 1/2 of 16 bits: the numbers that follow those drawn before."""
    global drawn
    count = math.prod(shape)
    index = torch.arange(drawn, drawn + count, dtype=torch.int64)
    drawn += count
    word = (index * 2654435761 + 12345) % 2**32 // 2**16
    return ((word.double() / 2**16 - 0.5) * scale).float().view(shape)


def attend(q, k, v, mask=None, dropout=0.0, causal=False):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    return (scores if mask is None else scores + mask).softmax(-1) @ v


def complete_torch():
    """What public code of attention calls and PyTorch 1.13 does not have."""
    functional = torch.nn.functional
    if not hasattr(functional, "scaled_dot_product_attention"):
        functional.scaled_dot_product_attention = attend
    if not hasattr(functional, "_canonical_mask"):
        functional._canonical_mask = lambda mask, **ignored: mask


def write(path, source, tensors):
    """A safetensors file of f32."""
    header, data = {"__metadata__": {"source": source}}, b""
    for name, tensor in tensors.items():
        values = tensor.detach().contiguous().numpy().astype("<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + data)

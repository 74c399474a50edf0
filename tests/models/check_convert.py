"""Checkpoints of PyTorch's through `mtil convert weights` and back: every tensor must come back with the same bits.

    python tests/models/check_convert.py build/mtil

Exit 77, which ctest takes for skipped, where Python has no torch or safetensors.
"""
import os
import subprocess
import sys
import tempfile

try:
    import torch
    from safetensors.torch import load_file, save_file
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)


MTIL = os.path.abspath(sys.argv[1])


def checkpoint():
    """The tensors of the public MoE-Adapters code: one block of each tower, two experts, two routers."""
    torch.manual_seed(1)
    clip, adapters, unused = {"logit_scale": torch.tensor(4.6), "visual.proj": torch.randn(8, 4).t().half()}, {}, {}
    for tower in ("visual.", ""):
        block = f"{tower}transformer.resblocks.0."
        clip[block + "ln_1.weight"] = torch.randn(8).half()
        for expert in range(2):
            for part, shape in (("down_proj.weight", (3, 8)), ("down_proj.bias", (3,)), ("up_proj.weight", (8, 3)),
                                ("up_proj.bias", (8,))):
                adapters[f"{block}adaptmlp_list.{expert}.{part}"] = torch.randn(*shape)
        for part in ("down_proj.weight", "up_proj.bias"):
            unused[f"{block}adaptmlp.{part}"] = adapters[f"{block}adaptmlp_list.1.{part}"]  # the same module
        for router in range(2):
            adapters[f"{block}router_list.{router}"] = torch.randn(8, 2)
            adapters[f"{block}w_noise_list.{router}"] = torch.randn(8, 2, dtype=torch.float64)
        unused.update({block + "ln_3.weight": torch.ones(8), block + "mean": torch.zeros(1), block + "std": torch.ones(1)})
    return clip, adapters, unused


def expect(found, *expected):
    wanted = {name: tensor for part in expected for name, tensor in part.items()}
    assert list(sorted(found)) == sorted(wanted), set(found) ^ set(wanted)
    for name, tensor in wanted.items():
        assert found[name].dtype == tensor.dtype and torch.equal(found[name], tensor), name


def convert(*arguments):
    subprocess.run([MTIL, "convert", "weights", "--quiet", *arguments], check=True)


def load(path):
    return torch.load(path, weights_only=True)["state_dict"]


def main():
    clip, adapters, unused = checkpoint()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        torch.save({"state_dict": {**clip, **adapters, **unused}}, "public.pth")
        convert("public.pth", "whole.safetensors")
        expect(load_file("whole.safetensors"), clip, adapters)
        convert("public.pth", "adapters.safetensors", "--only", "adapters")
        expect(load_file("adapters.safetensors"), adapters)
        convert("public.pth", "clip.pth", "--only", "weights")
        expect(load("clip.pth"), clip)
        convert("adapters.safetensors", "back.pth", "--base", "clip.pth")
        expect(load("back.pth"), clip, adapters)

        save_file({name: tensor.contiguous() for name, tensor in clip.items()}, "stated.safetensors", {"image_heads": "16", "activation": "gelu"})
        convert("stated.safetensors", "stated.bin")
        expect(load("stated.bin"), clip)
        assert torch.load("stated.bin", weights_only=True)["mtil_metadata"] == {"image_heads": "16", "activation": "gelu"}
        convert("stated.bin", "again.pt")
        with open("stated.bin", "rb") as first, open("again.pt", "rb") as second:
            assert first.read() == second.read()

        single = {"transformer.resblocks.0.router1": torch.randn(8, 2), "transformer.resblocks.0.w_noise": torch.ones(8, 2)}
        torch.save(single, "single.pth")
        convert("single.pth", "single.safetensors")
        expect(load_file("single.safetensors"), {"transformer.resblocks.0.router_list.0": single["transformer.resblocks.0.router1"],
                                                 "transformer.resblocks.0.w_noise_list.0": torch.ones(8, 2)})
    print(f"PyTorch {torch.__version__}: what was written is what was read")


if __name__ == "__main__":
    main()

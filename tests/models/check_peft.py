"""An adapter that PEFT trained the names of, through `mtil convert peft` and back: tensors, names and features are PEFT's.

    python tests/models/check_peft.py build/mtil
    python tests/models/check_peft.py build/mtil --peft    # by hand: PEFT also loads what was written
    python tests/models/check_peft.py --make               # by hand: draws tests/fixtures/peft anew

The last two need torch, transformers, safetensors and peft; the fixture is of peft 0.10.0 and transformers 4.38.2. The first needs
Python alone. The rank of the fixture is 6, which becomes 8 with rows of zeros.
"""
import array
import json
import os
import struct
import subprocess
import sys
import tempfile
import zlib

FIXTURE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../fixtures/peft")
SIDE, TOLERANCE = 32, 2e-6
MEAN, DEVIATION = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)  # of CLIP's images


def read(path):
    """Names, and shape and bytes of the tensors of a safetensors file; its metadata."""
    data = open(path, "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    header, body = json.loads(data[8:8 + size]), data[8 + size:]
    metadata = header.pop("__metadata__", {})
    return {name: (t["shape"], body[t["data_offsets"][0]:t["data_offsets"][1]]) for name, t in header.items()}, metadata


def floats(tensor):
    return array.array("f", tensor[1])


def pixels():
    return [(7 * i + i * i // 11 + 40 * (i % 3)) % 256 for i in range(SIDE * SIDE * 3)]


def write_png(path):
    rows = b"".join(b"\0" + bytes(pixels()[y * SIDE * 3:(y + 1) * SIDE * 3]) for y in range(SIDE))
    chunks = b"".join(struct.pack(">I", len(part)) + kind + part + struct.pack(">I", zlib.crc32(kind + part))
                      for kind, part in ((b"IHDR", struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0)),
                                         (b"IDAT", zlib.compress(rows)), (b"IEND", b"")))
    open(path, "wb").write(b"\x89PNG\r\n\x1a\n" + chunks)


# --- With PEFT ---


def features_of(model):
    import torch
    image = torch.tensor(pixels(), dtype=torch.float32).reshape(SIDE, SIDE, 3) / 255
    image = ((image - torch.tensor(MEAN)) / torch.tensor(DEVIATION)).permute(2, 0, 1)[None]
    with torch.no_grad():
        features = model.get_image_features(pixel_values=image)[0]
    return (features / features.norm()).tolist()


def clip():
    import torch
    from transformers import CLIPConfig, CLIPModel
    torch.manual_seed(1)
    sizes = {"hidden_size": 32, "intermediate_size": 128, "num_attention_heads": 4, "projection_dim": 16}
    return CLIPModel(CLIPConfig(
        projection_dim=16, text_config={**sizes, "num_hidden_layers": 1, "vocab_size": 40, "max_position_embeddings": 12},
        vision_config={**sizes, "num_hidden_layers": 2, "image_size": SIDE, "patch_size": 8})).eval()


def make():
    import torch
    from peft import LoraConfig, get_peft_model
    from safetensors.torch import save_file
    os.makedirs(FIXTURE, exist_ok=True)
    model = clip()
    save_file({name: value.contiguous() for name, value in model.state_dict().items() if "position_ids" not in name},
              os.path.join(FIXTURE, "clip.safetensors"))
    before = features_of(model)
    adapted = get_peft_model(model, LoraConfig(r=6, lora_alpha=9, init_lora_weights=False,
                                               target_modules=["q_proj", "v_proj", "out_proj", "fc1"]))
    for name, value in adapted.named_parameters():
        if "lora_" in name:
            torch.nn.init.normal_(value, std=0.2)
    adapted.eval().save_pretrained(FIXTURE)
    os.remove(os.path.join(FIXTURE, "README.md"))
    json.dump({"plain": before, "adapted": features_of(adapted)}, open(os.path.join(FIXTURE, "features.json"), "w"))


def expect_peft_reads(folder, expected):
    from peft import PeftModel
    found = features_of(PeftModel.from_pretrained(clip(), folder).eval())
    assert max(abs(a - b) for a, b in zip(found, expected)) < TOLERANCE, "features of PEFT with what was written"


# --- With mtil ---


def run(*arguments):
    subprocess.run([MTIL, *arguments, "--quiet"], check=True)


def embed(folder, *arguments):
    out = os.path.join(folder, "features.safetensors")
    run("embed", "--weights", os.path.join(FIXTURE, "clip.safetensors"), "--heads", "4,4", "--activation", "quick_gelu",
        "--precision", "f32", "--backend", "cpu", "--images", os.path.join(folder, "images"), "--out", out, *arguments)
    return floats(read(out)[0]["features"])


def expect_near(found, expected, what):
    assert len(found) == len(expected) and max(abs(a - b) for a, b in zip(found, expected)) < TOLERANCE, what


def expect_padded(own, theirs):
    """Equal but for rows of A and columns of B that are zero."""
    assert sorted(own) == sorted(theirs), set(own) ^ set(theirs)
    for name, (shape, _) in theirs.items():
        a, b, width = floats(own[name]), floats(theirs[name]), own[name][0][1]
        for i in range(own[name][0][0] * width):
            y, x = divmod(i, width)
            assert a[i] == (b[y * shape[1] + x] if y < shape[0] and x < shape[1] else 0), name


def refused(folder):
    """Each change of the fixture's configuration, and each other file, is an error that says why."""
    changed, out = os.path.join(folder, "changed"), os.path.join(folder, "out.safetensors")
    os.mkdir(changed)
    os.symlink(os.path.join(os.path.abspath(FIXTURE), "adapter_model.safetensors"),
               os.path.join(changed, "adapter_model.safetensors"))
    config = json.load(open(os.path.join(FIXTURE, "adapter_config.json")))
    for change, words in (({"use_dora": True}, "use_dora is set"), ({"init_lora_weights": "pissa"}, "init_lora_weights is pissa"),
                          ({"alpha_pattern": {"fc1": 2}}, "alpha_pattern is set"),
                          ({"bias": "all"}, "bias is all"), ({"peft_type": "IA3"}, "found IA3"),
                          ({"r": 8}, "matrices of one rank")):
        json.dump({**config, **change}, open(os.path.join(changed, "adapter_config.json"), "w"))
        expect_refusal(words, changed, out)
    expect_refusal("expected low-rank deltas", os.path.join(FIXTURE, "clip.safetensors"), os.path.join(folder, "none"))
    json.dump(config, open(os.path.join(changed, "adapter_config.json"), "w"))
    os.remove(os.path.join(changed, "adapter_model.safetensors"))
    os.symlink(os.path.join(os.path.abspath(FIXTURE), "clip.safetensors"), os.path.join(changed, "adapter_model.safetensors"))
    expect_refusal("0 of its ", changed, out)
    assert not os.path.exists(out) and not os.path.exists(os.path.join(folder, "none"))


def expect_refusal(words, *arguments):
    said = subprocess.run([MTIL, "convert", "peft", *arguments], capture_output=True, text=True)
    assert said.returncode in (1, 2) and words in said.stderr, (words, said.stderr)


def main():
    expected = json.load(open(os.path.join(FIXTURE, "features.json")))
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "images"))
        write_png(os.path.join(folder, "images", "image.png"))
        deltas, again = os.path.join(folder, "deltas.safetensors"), os.path.join(folder, "again.safetensors")
        peft = os.path.join(folder, "peft")
        run("convert", "peft", FIXTURE, deltas)
        expect_near(embed(folder), expected["plain"], "features without the adapter")
        expect_near(embed(folder, "--adapters", deltas), expected["adapted"], "features with the adapter")
        assert max(abs(a - b) for a, b in zip(expected["plain"], expected["adapted"])) > 0.01
        run("convert", "peft", deltas, peft)
        expect_padded(read(os.path.join(peft, "adapter_model.safetensors"))[0],
                      read(os.path.join(FIXTURE, "adapter_model.safetensors"))[0])
        config = json.load(open(os.path.join(peft, "adapter_config.json")))
        assert (config["r"], config["lora_alpha"]) == (8, 12), config
        run("convert", "peft", peft, again)
        assert read(deltas) == read(again), "deltas there and back"
        refused(folder)
        if "--peft" in sys.argv:
            expect_peft_reads(peft, expected["adapted"])
    print("equal")


if "--make" in sys.argv:
    make()
else:
    MTIL = os.path.abspath(sys.argv[1])
    main()

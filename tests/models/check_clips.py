"""Compares `mtil embed` with PyTorch: encoders of published sizes with random weights, each written in one of the forms that weights
come in. By hand, since it takes gigabytes and minutes; needs torch, open_clip_torch, timm, transformers, sentencepiece,
safetensors, Pillow.

    python tests/models/check_clips.py --mtil build/mtil --work /tmp/clips                 # all
    python tests/models/check_clips.py --mtil build/mtil --work /tmp/clips ViT-B-32 ViT-H-14

Prints the largest difference between any two values of the normalised features (which are at most 1), and exits 0 only when none
is above 1e-5. Each model's files are deleted when it is done. g/14 takes the most memory.
"""
import argparse
import gc
import json
import os
import resource
import shutil
import subprocess
import sys

import numpy
import torch
from PIL import Image
from safetensors.torch import load_file, save_file

TOLERANCE = 1e-5
TEXTS = ["a photo of a cat.", "A satellite image: forest, river & road!", "naïve café, 3.14 €", "x" * 200]
CLIP = ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711))
HALF = ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))


def draw_images(folder, size, norm=CLIP):
    """At the model's resolution, so that nothing is resized."""
    mean, deviation = (torch.tensor(numbers).view(3, 1, 1) for numbers in norm)
    os.makedirs(folder)
    random = numpy.random.default_rng(1)
    images = []
    for i in range(3):
        pixels = random.integers(0, 256, (size, size, 3), dtype=numpy.uint8)
        Image.fromarray(pixels).save(os.path.join(folder, f"{i}.png"))
        images.append((torch.from_numpy(pixels).permute(2, 0, 1) / 255 - mean) / deviation)
    return torch.stack(images)


def normalised(features):
    return torch.nn.functional.normalize(features.float(), dim=-1)


def round_to_half(model):
    """Values that f16 holds, so that the same model can be written in f16 and in f32."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter.half())


def features_of(model, images, tokens):
    with torch.no_grad():
        return normalised(model.encode_image(images)), normalised(model.encode_text(tokens))


# --- forms: each writes the model below folder and returns the path of the weights and what the command line must say ---


class Archive(torch.nn.Module):
    """As OpenAI's: the three sizes beside the weights, in f16 but for the norms."""

    def __init__(self, model, size):
        super().__init__()
        for name, child in model.named_children():
            setattr(self, name, child)
        for name, parameter in model.named_parameters(recurse=False):
            setattr(self, name, parameter)
        for name, number in (("input_resolution", size), ("context_length", 77), ("vocab_size", 49408)):
            self.register_buffer(name, torch.tensor(number))

    def forward(self, x):
        return self.logit_scale * x


def write_script(model, folder, size):
    for module in model.modules():
        if not isinstance(module, torch.nn.LayerNorm):
            for parameter in module.parameters(recurse=False):
                parameter.data = parameter.data.half()
    path = os.path.join(folder, "weights.pt")
    torch.jit.trace(Archive(model, size), torch.zeros(1), check_trace=False).save(path)
    return path, []


def write_state_dict(model, folder, size):
    path = os.path.join(folder, "weights.pth")
    torch.save({"epoch": 1, "state_dict": model.state_dict()}, path)
    return path, ["--activation", "quick_gelu"]


def write_open_clip(model, folder, size, config, suffix):
    path = os.path.join(folder, "open_clip_model" + suffix)
    state = {name: tensor.half() for name, tensor in model.state_dict().items()}
    if suffix == ".bin":
        torch.save(state, path)
    else:
        save_file({name: tensor.contiguous() for name, tensor in state.items()}, path)
    preprocess = {"mean": CLIP[0], "std": CLIP[1], "interpolation": "bicubic", "resize_mode": "shortest"}  # as published
    with open(os.path.join(folder, "open_clip_config.json"), "w") as file:
        json.dump({"model_cfg": config, "preprocess_cfg": preprocess}, file)
    return path, []


# --- models ---


def open_clip_model(name, form, images_at, folder):
    import open_clip

    config = dict(open_clip.get_model_config(name))
    model = open_clip.CLIP(**config).eval()
    round_to_half(model)
    size = config["vision_cfg"]["image_size"]
    images = draw_images(images_at, size)
    expected = features_of(model, images, open_clip.get_tokenizer(name)(TEXTS))
    if form in (".bin", ".safetensors"):
        return expected, write_open_clip(model, folder, size, config, form)
    return expected, (write_script if form == "script" else write_state_dict)(model, folder, size)


def huggingface_model(sizes, form, images_at, folder):
    import open_clip
    from transformers import CLIPConfig, CLIPModel

    image, text, projection = sizes
    common = dict(hidden_act="quick_gelu", eos_token_id=49407, bos_token_id=49406)
    config = CLIPConfig(text_config=dict(text, **common), vision_config=dict(image, **common), projection_dim=projection)
    model = CLIPModel(config).eval()
    round_to_half(model)
    images = draw_images(images_at, image["image_size"])
    tokens = open_clip.get_tokenizer("ViT-L-14")(TEXTS)
    with torch.no_grad():
        found = model.get_image_features(images), model.get_text_features(tokens)
        expected = tuple(normalised(f if torch.is_tensor(f) else f.pooler_output) for f in found)
    model.save_pretrained(folder, max_shard_size="500MB")
    index = os.path.join(folder, "model.safetensors.index.json")
    return expected, (shards_of_pytorch(index, folder) if form == ".bin" else index, [])


def shards_of_pytorch(index, folder):
    """The same as pytorch_model-*.bin, which newer versions of transformers do not write any more."""
    with open(index) as file:
        content = json.load(file)
    for name in sorted(set(content["weight_map"].values())):
        torch.save(load_file(os.path.join(folder, name)), os.path.join(folder, as_bin(name)))
        os.remove(os.path.join(folder, name))
    content["weight_map"] = {tensor: as_bin(name) for tensor, name in content["weight_map"].items()}
    path = os.path.join(folder, "pytorch_model.bin.index.json")
    with open(path, "w") as file:
        json.dump(content, file)
    return path


def as_bin(name):
    return name.replace("model-", "pytorch_model-").replace(".safetensors", ".bin")


def siglip_vocabulary(folder, pieces):
    """A tokenizer of the published size and kind that was trained on this project's pages, and the rows of the texts."""
    import check_sentencepiece

    path = os.path.join(folder, "spiece.model")
    unigram = pieces == 32000
    processor = check_sentencepiece.train(path, check_sentencepiece.UNIGRAM if unigram else check_sentencepiece.PAIRS, pieces)
    return path, torch.tensor([check_sentencepiece.row_of(processor, text, unigram) for text in TEXTS])


def open_clip_siglip(name, images_at, folder):
    """Trained with GELU by tanh (big_vision's default), which open_clip leaves out in some towers; it is put in here."""
    import open_clip

    config = dict(open_clip.get_model_config(name))
    config.pop("custom_text")
    model = open_clip.CustomTextCLIP(**config).eval()
    for parent in model.modules():
        for child, module in parent.named_children():
            if isinstance(module, torch.nn.GELU):
                setattr(parent, child, torch.nn.GELU(approximate="tanh"))
    for tensor in (model.visual.trunk.attn_pool.latent, model.text.text_projection.bias):
        torch.nn.init.normal_(tensor)
    round_to_half(model)
    images = draw_images(images_at, config["vision_cfg"]["image_size"], HALF)
    vocabulary, tokens = siglip_vocabulary(folder, config["text_cfg"]["vocab_size"])
    expected = features_of(model, images, tokens)
    path = os.path.join(folder, "open_clip_model.safetensors")
    save_file({name: tensor.half().contiguous() for name, tensor in model.state_dict().items()}, path)
    with open(os.path.join(folder, "open_clip_config.json"), "w") as file:
        json.dump({"model_cfg": dict(config, custom_text=True), "preprocess_cfg": {"mean": HALF[0], "std": HALF[1]}}, file)
    return expected, (path, ["--vocab", vocabulary])


def huggingface_siglip(pieces, images_at, folder):
    from transformers import SiglipConfig, SiglipModel

    model = SiglipModel(SiglipConfig(text_config={"vocab_size": pieces})).eval()
    round_to_half(model)
    images = draw_images(images_at, 224, HALF)
    vocabulary, tokens = siglip_vocabulary(folder, pieces)
    with torch.no_grad():
        expected = normalised(model.get_image_features(images)), normalised(model.get_text_features(tokens))
    model.save_pretrained(folder)
    with open(os.path.join(folder, "preprocessor_config.json"), "w") as file:
        json.dump({"image_mean": HALF[0], "image_std": HALF[1], "size": {"height": 224, "width": 224}}, file)
    return expected, (os.path.join(folder, "model.safetensors"), ["--vocab", vocabulary])


def timm_model(name, classes, images_at, folder):
    """Features before the head, as a classifier's head gets them: a ViT has no texts."""
    import timm

    model = timm.create_model(name, pretrained=False, num_classes=classes).eval()
    round_to_half(model)
    images = draw_images(images_at, 224, HALF)
    with torch.no_grad():
        expected = normalised(model.forward_head(model.forward_features(images), pre_logits=True))
    path = os.path.join(folder, "model.safetensors")
    save_file({name: tensor.contiguous() for name, tensor in model.state_dict().items()}, path)
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump({"architecture": name, "num_classes": classes, "pretrained_cfg": {"mean": HALF[0], "std": HALF[1]}}, file)
    return (expected, None), (path, ["--heads", "12", "--activation", "gelu"])


def large(size):
    return (dict(hidden_size=1024, intermediate_size=4096, num_hidden_layers=24, num_attention_heads=16, patch_size=14,
                 image_size=size),
            dict(hidden_size=768, intermediate_size=3072, num_hidden_layers=12, num_attention_heads=12), 768)


MODELS = {
    "ViT-B-32": ("TorchScript archive, f16", lambda *a: open_clip_model("ViT-B-32-quickgelu", "script", *a)),
    "ViT-B-16": (".pth with state_dict", lambda *a: open_clip_model("ViT-B-16-quickgelu", "state_dict", *a)),
    "ViT-L-14": ("CLIPModel, safetensors in shards", lambda *a: huggingface_model(large(224), ".safetensors", *a)),
    "ViT-L-14-336": ("CLIPModel, .bin in shards", lambda *a: huggingface_model(large(336), ".bin", *a)),
    "ViT-L-14-openai": ("TorchScript archive, f16", lambda *a: open_clip_model("ViT-L-14-quickgelu", "script", *a)),
    "ViT-B-16-laion": ("open_clip .bin, f16", lambda *a: open_clip_model("ViT-B-16", ".bin", *a)),
    "ViT-B-16-datacomp": ("open_clip safetensors, f16", lambda *a: open_clip_model("ViT-B-16", ".safetensors", *a)),
    "ViT-B-16-in21k": ("timm's safetensors", lambda *a: timm_model("vit_base_patch16_224", 21843, *a)),
    "ViT-B-16-SigLIP": ("open_clip safetensors, f16", lambda *a: open_clip_siglip("ViT-B-16-SigLIP", *a)),
    "ViT-B-16-SigLIP2": ("open_clip safetensors, f16", lambda *a: open_clip_siglip("ViT-B-16-SigLIP2", *a)),
    "siglip-base": ("SiglipModel, safetensors", lambda *a: huggingface_siglip(32000, *a)),
    "siglip2-base": ("SiglipModel, safetensors", lambda *a: huggingface_siglip(256000, *a)),
    "ViT-H-14": ("open_clip .bin, f16", lambda *a: open_clip_model("ViT-H-14", ".bin", *a)),
    "ViT-g-14": ("open_clip safetensors, f16", lambda *a: open_clip_model("ViT-g-14", ".safetensors", *a)),
}


def embed(mtil, arguments, out):
    subprocess.run([mtil, "embed", "--quiet", "--backend", "cpu", "--precision", "f32", *arguments, "--out", out], check=True)
    return load_file(out)["features"]


def check(name, mtil, work):
    import open_clip

    folder = os.path.join(work, name)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(os.path.join(folder, "weights"))
    images_at, texts_at = os.path.join(folder, "images"), os.path.join(folder, "texts.txt")
    with open(texts_at, "w") as file:
        file.write("\n".join(TEXTS) + "\n")
    torch.manual_seed(1)
    form, make = MODELS[name]
    expected, (weights, more) = make(images_at, os.path.join(folder, "weights"))
    gc.collect()
    vocabulary = os.path.join(os.path.dirname(open_clip.__file__), "bpe_simple_vocab_16e6.txt.gz")
    common = ["--weights", weights, *more]
    if "--vocab" not in more:
        common += ["--vocab", vocabulary]
    out = os.path.join(folder, "features.safetensors")
    images = embed(mtil, [*common, "--images", images_at], out)
    found = [("images", images, expected[0])]
    if expected[1] is not None:
        found.append(("texts", embed(mtil, [*common, "--texts", texts_at], out), expected[1]))
    differences = [(a - b).abs().max().item() for _, a, b in found]
    gigabytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    words = "  ".join(f"{kind} {difference:.1e}" for (kind, _, _), difference in zip(found, differences))
    print(f"{name:18} {form:44} {words}  {gigabytes:.1f} GiB", flush=True)
    shutil.rmtree(folder)
    return max(differences) <= TOLERANCE


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mtil", default="build/mtil")
    parser.add_argument("--work", required=True, help="folder for the models; made and emptied")
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"of {', '.join(MODELS)}; none: all, one process each")
    given = parser.parse_args()
    unknown = [name for name in given.models if name not in MODELS]
    if unknown:
        parser.error(f"{unknown[0]}: expected one of {', '.join(MODELS)}")
    if len(given.models) == 1:
        return 0 if check(given.models[0], given.mtil, given.work) else 1
    failed = 0
    for name in given.models or MODELS:
        failed |= subprocess.run([sys.executable, __file__, "--mtil", given.mtil, "--work", given.work, name]).returncode
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

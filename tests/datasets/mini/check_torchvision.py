"""torchvision's own classes read what `mtil data mini` writes, with the labels, files and order of this program.

    check_torchvision.py MTIL LIST_ITEMS

Checksums of published files are the one thing that is set here: CIFAR-100 and Flowers102 compare with them, and files
that were drawn have others.
"""

import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import scipy.io  # noqa: F401: for two of the classes
    import torch
    from torchvision import datasets
except ImportError as missing:
    print(f"skipped: no {missing.name}; MTIL_PYTHON names a Python that has torchvision and scipy")
    sys.exit(77)


def md5(path):
    return hashlib.md5(path.read_bytes()).hexdigest()


def in_two(items):
    """The benchmark's own split of a dataset that has none."""
    train = int(0.8 * len(items))
    generator = torch.Generator().manual_seed(42)
    order = torch.utils.data.random_split(range(len(items)), [train, len(items) - train], generator=generator)
    return [[items[i] for i in part] for part in order]


def aircraft(root):
    parts = [datasets.FGVCAircraft(root, split) for split in ("train", "test")]
    return parts, [list(zip(part._labels, part._image_files)) for part in parts]


def caltech101(root):
    whole = datasets.Caltech101(root)
    folder = os.path.join(whole.root, "101_ObjectCategories")
    items = [
        (label, os.path.join(folder, whole.categories[label], f"image_{number:04d}.jpg"))
        for label, number in zip(whole.y, whole.index)
    ]
    return [whole], in_two(items)


def cifar100(root):
    class Drawn(datasets.CIFAR100):
        train_list = [["train", md5(root / "cifar-100-python/train")]]
        test_list = [["test", md5(root / "cifar-100-python/test")]]
        meta = {**datasets.CIFAR100.meta, "md5": md5(root / "cifar-100-python/meta")}

    parts = [Drawn(root, train) for train in (True, False)]
    return parts, [[(label, None) for label in part.targets] for part in parts]


def dtd(root):
    parts = [datasets.DTD(root, split) for split in ("train", "test")]
    return parts, [list(zip(part._labels, part._image_files)) for part in parts]


def eurosat(root):
    whole = datasets.EuroSAT(root)
    return [whole], in_two([(label, path) for path, label in whole.samples])


def flowers(root):
    class Drawn(datasets.Flowers102):
        _file_dict = {
            key: (name, md5(root / "flowers-102" / name) if name.endswith(".mat") else published)
            for key, (name, published) in datasets.Flowers102._file_dict.items()
        }

    parts = [Drawn(root, split) for split in ("train", "test")]
    return parts, [list(zip(part._labels, part._image_files)) for part in parts]


def food(root):
    parts = [datasets.Food101(root, split) for split in ("train", "test")]
    return parts, [list(zip(part._labels, part._image_files)) for part in parts]


def mnist(root):
    parts = [datasets.MNIST(root, train) for train in (True, False)]
    return parts, [[(label, None) for label in part.targets.tolist()] for part in parts]


def oxford_pet(root):
    parts = [datasets.OxfordIIITPet(root, split) for split in ("trainval", "test")]
    return parts, [list(zip(part._labels, part._images)) for part in parts]


def stanford_cars(root):
    parts = [datasets.StanfordCars(root, split) for split in ("train", "test")]
    return parts, [[(label, path) for path, label in part._samples] for part in parts]


def sun397(root):
    whole = datasets.SUN397(root)
    items = sorted(zip(whole._image_files, whole._labels))  # its own order is the file system's
    return [whole], in_two([(label, path) for path, label in items])


def listed(program, root, name):
    parts = [[], []]
    for line in subprocess.run([program, root, name], check=True, text=True, stdout=subprocess.PIPE).stdout.splitlines():
        part, label, path = line.split(" ", 2)
        parts[int(part)].append((int(label), path))
    return parts


def check(name, objects, theirs, ours, root):
    for part in objects:
        image, label = part[len(part) - 1]
        assert image.size[0] > 0 and int(label) >= 0, name
    for their_part, our_part in zip(theirs, ours):
        assert len(their_part) == len(our_part) > 0, (name, len(their_part), len(our_part))
        for position, ((label, path), (our_label, our_path)) in enumerate(zip(their_part, our_part)):
            assert int(label) == our_label, (name, position, label, our_label)
            assert path is None or os.path.relpath(path, root) == our_path, (name, position, path, our_path)


def main(program, list_items):
    readers = (aircraft, caltech101, cifar100, dtd, eurosat, flowers, food, mnist, oxford_pet, stanford_cars, sun397)
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        subprocess.run([program, "data", "mini", folder, "--quiet"], check=True)
        for reader in readers:
            objects, theirs = reader(root)
            check(reader.__name__, objects, theirs, listed(list_items, folder, reader.__name__), root)
    print(f"{len(readers)} datasets: labels, files and order are torchvision's")


main(*sys.argv[1:])

"""What a run reads: tasks, their classes and prompts, images and labels."""

from __future__ import annotations

import hashlib
import json
import operator
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Callable, Iterable, Iterator, Mapping, Optional

from mtil.program import call, setting_words


class Items(Sequence):
    """Images and labels, as torch.utils.data.DataLoader takes them: items[i] is (image, label).

    paths:     N paths of image files, in the order of the run's own list
    labels:    N whole numbers, counted within the task
    transform: None, or a function of the PIL image (RGB) whose result is given in its place
    """

    def __init__(self, paths: list[str], labels: list[int], transform: Optional[Callable[[Any], Any]] = None):
        self.paths, self.labels, self.transform = paths, labels, transform

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, i):
        if isinstance(i, slice):
            return Items(self.paths[i], self.labels[i], self.transform)
        image = self.image(i)
        return (image if self.transform is None else self.transform(image)), self.labels[i]

    def image(self, i: int) -> Any:
        """PIL.Image.Image in RGB."""
        from PIL import Image

        with Image.open(self.paths[i]) as image:
            return image.convert("RGB")

    def map(self, transform: Callable[[Any], Any]) -> Items:
        """The same items with this transform."""
        return Items(self.paths, self.labels, transform)


class Task:
    """A task of a run.

    index:        its place in the order, from 0
    name:         of its dataset
    classes:      C names
    prompts:      C texts, one a class, which training uses
    templates:    texts with {} for the name of a class; the first makes the prompts
    label_offset: what is added to a label where the classes of several tasks compete
    train, test:  Items
    """

    def __init__(self, record: Mapping[str, Any], train: Items, test: Items):
        self.index: int = record["task"]
        self.name: str = record["name"]
        self.classes: list[str] = record["classes"]
        self.prompts: list[str] = record["prompts"]
        self.templates: list[str] = record["templates"]
        self.label_offset: int = record["label_offset"]
        self.train, self.test = train, test

    def __repr__(self) -> str:
        return f"Task({self.index}, {self.name!r}, {len(self.train)} + {len(self.test)} images)"


def tasks_of(lines: Iterable[str]) -> Iterator[Task]:
    """Of the lines of `mtil data list`."""
    for line in lines:
        record = json.loads(line)
        if "classes" in record:
            task = Task(record, Items([], []), Items([], []))
            yield task
        else:
            part = task.train if record["part"] == "train" else task.test
            part.paths.append(record["path"])
            part.labels.append(record["label"])


def whole_numbers(labels: Iterable[int]) -> list[int]:
    """Of a list, an array or a tensor."""
    return [operator.index(label) for label in (labels.tolist() if hasattr(labels, "tolist") else labels)]


def items_of(path: str) -> Items:
    """Of a list that was handed to a program."""
    with open(path, encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    return Items([record["path"] for record in records], [record["label"] for record in records])


def with_image_files(words: list[str], listed: str) -> str:
    """The list with paths of PNG files, which stay in the cache below the digest of what was listed."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mtil" / "python"
    folder = cache / hashlib.sha256(listed.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    kept = folder / "items.jsonl"
    if not kept.exists():
        written = folder / f"items.{os.getpid()}"
        folder.mkdir(parents=True, exist_ok=True)
        written.write_text(call([*words, f"--images={folder}"]), encoding="utf-8")
        written.replace(kept)
    return kept.read_text(encoding="utf-8")


def tasks(suite: str, seed: int = 1, settings: Optional[Mapping[str, Any]] = None, **keywords: Any) -> list[Task]:
    """The tasks that a run of the suite with this seed reads, in its order, with its images and labels.

    settings: {"data.order": "mnist,dtd"}; keywords likewise, with __ for a dot: data__order="mnist,dtd".
    """
    words = ["data", "list", suite, *setting_words(settings, keywords), f"--seed={seed}", "--quiet"]
    listed = call(words)
    if '"record":' in listed:
        listed = with_image_files(words, listed)
    return list(tasks_of(listed.rstrip("\n").split("\n")))

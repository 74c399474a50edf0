"""Methods and merge policies in Python: protocol 1 on standard input and output (docs/external.md)."""

from __future__ import annotations

import json
import os
import select
import sys
import traceback
from typing import Any, Callable, Iterable, Iterator, Mapping, Optional, Sequence

from mtil.data import Task, items_of, whole_numbers


class Method:
    """A method. Override train and predict; save and load, so that a stopped run goes on.

    name, version, parameters, zero_shot: what is told about it; zero_shot: it is tested before training, too.
    Before `begin` is called, these are set: seed; options ({"lr": 0.1} of method.options.lr=0.1); tasks (list of Task);
    threads, device ("cpu", "cuda:0"), precision ("f32", "bf16"); folder, its own, which stays when a run is stopped;
    label_space ("task", "all", "seen", "open"); weights and vocabulary, the files of the suite's CLIP.
    """

    name = ""
    version = ""
    parameters = 0
    zero_shot = False
    seed: int
    threads: int
    tasks: list[Task]
    options: dict[str, Any]
    device: str
    folder: str

    def begin(self) -> None:
        """Called once, before any task."""

    def train(self, task: Task) -> Optional[Iterator[Sequence[float]]]:
        """Trains on a task. A generator reports (step, steps, loss) or (step, steps, loss, learning_rate), steps from
        1; where it yields, the run may be stopped."""
        raise NotImplementedError

    def predict(self, task: Task, after_task: int) -> Iterable[int]:
        """Labels [len(task.test)]: within the task where label_space is "task", else label_offset + label.
        after_task: the last task trained, -1 before the first."""
        raise NotImplementedError

    def save(self, folder: str) -> None:
        """Writes to the folder, which is there, what `load` needs."""

    def load(self, folder: str, after_task: int) -> None:
        """Reads what `save` wrote after that task."""

    def stop(self) -> None:
        """Called where the run is stopped; what is to be kept of a task that is not finished goes to self.folder."""


class View:
    """What a policy sees of a tower: B blocks with E experts each.

    tower: "image" or "text"; task, iteration: from 0, from 1; after_task: whether the task has ended
    counts [B][E]: how often each expert was chosen since the task began; frozen [B][E]: 0 or 1
    earlier [B][E], pairs [B][E][E], next [B-1][E][E], similarity [B][E][E]: where it is among the needs, else None
    seed, options, towers ({"image": {"blocks": B, "experts": E}}): of the run
    state: a text, None at first, which may be set and is there again at the next merge, also of a resumed run
    """

    tower: str
    task: int
    iteration: int
    after_task: bool
    counts: list[list[int]]
    frozen: list[list[int]]
    earlier: Optional[list[list[int]]] = None
    pairs: Optional[list[list[list[int]]]] = None
    next: Optional[list[list[list[int]]]] = None
    similarity: Optional[list[list[list[float]]]] = None

    def __init__(self, begin: Mapping[str, Any], message: Mapping[str, Any]):
        self.seed: int = begin["seed"]
        self.options: dict[str, Any] = begin["options"]
        self.towers: dict[str, dict[str, int]] = begin["towers"]
        self.state: Optional[str] = begin["state"]
        self.__dict__.update((key, value) for key, value in message.items() if key != "type")


class Lines:
    """Messages, a line of JSON each. What the program prints itself goes to standard error from here on."""

    def __init__(self) -> None:
        self.input, self.output, self.read = os.dup(0), os.fdopen(os.dup(1), "w", encoding="utf-8"), b""
        os.dup2(2, 1)

    def are_waiting(self) -> bool:
        return b"\n" in self.read or bool(select.select([self.input], [], [], 0)[0])

    def receive(self) -> dict[str, Any]:
        while b"\n" not in self.read:
            part = os.read(self.input, 1 << 20)
            if not part:
                return {"type": "end"}
            self.read += part
        line, self.read = self.read.split(b"\n", 1)
        return json.loads(line)

    def send(self, type: str, **fields: Any) -> None:
        self.output.write(json.dumps({"type": type, **fields}) + "\n")
        self.output.flush()

    def serve(self, role: str, answers: Mapping[str, Callable[[dict[str, Any]], Optional[bool]]]) -> None:
        """Until an answer returns True, or the end. An exception becomes an error of the run."""
        try:
            message = self.receive()
            if message["type"] == "begin" and (message["mtil"], message["role"]) != (1, role):
                raise ValueError(f"expected protocol 1 and the role {role}, found {message['mtil']}, {message['role']}")
            while message["type"] != "end" and not answers[message["type"]](message):
                message = self.receive()
        except Exception as error:
            traceback.print_exc()
            frame = traceback.extract_tb(error.__traceback__)[-1]
            print(f"{frame.filename}, line {frame.lineno}: {frame.line}", file=sys.stderr, flush=True)
            self.send("error", message=f"{type(error).__name__}: {error}")
            sys.exit(1)


GIVEN = ("seed", "options", "threads", "device", "precision", "folder", "label_space", "weights", "vocabulary")


def serve(method: Method) -> None:
    """Answers mtil, which started this program as method.command, until the run ends."""
    lines = Lines()

    def begin(message: dict[str, Any]) -> None:
        for key in GIVEN:
            setattr(method, key, message[key])
        method.tasks = [Task(task, items_of(task["train"]), items_of(task["test"])) for task in message["tasks"]]
        method.begin()
        if message["resume"] is not None:
            method.load(message["resume"]["folder"], message["resume"]["after_task"])
        lines.send("ready", name=method.name or type(method).__name__, version=method.version,
                   parameters=method.parameters, zero_shot=method.zero_shot)

    def train(message: dict[str, Any]) -> Optional[bool]:
        for report in method.train(method.tasks[message["task"]]) or ():
            lines.send("progress", **dict(zip(("step", "steps", "loss", "learning_rate"), report)))
            if lines.are_waiting():
                return stop(lines.receive())
        lines.send("trained", task=message["task"])
        return None

    def test(message: dict[str, Any]) -> None:
        labels = method.predict(method.tasks[message["task"]], message["after_task"])
        lines.send("predicted", task=message["task"], labels=whole_numbers(labels))

    def save(message: dict[str, Any]) -> None:
        method.save(message["folder"])
        lines.send("saved")

    def stop(message: dict[str, Any]) -> bool:
        method.stop()
        lines.send("stopped")
        return True

    lines.serve("method", {"begin": begin, "train": train, "test": test, "save": save, "stop": stop})


def policy(function: Callable[[View], Iterable[Mapping[str, Any]]], needs: Sequence[str] = ()) -> None:
    """Answers mtil, which started this program as merge.command, until the run ends.

    function(view) returns merges: {"block": b, "sources": [e, f], "target": t}, with "weights" where they differ,
    or {"block": b, "skip": "why"}. needs: what it sees besides, of "earlier", "pairs", "next", "similarity".
    """
    lines = Lines()
    begun: dict[str, Any] = {}

    def begin(message: dict[str, Any]) -> None:
        begun.update(message)
        lines.send("ready", name=function.__name__, needs=list(needs))

    def merge(message: dict[str, Any]) -> None:
        view = View(begun, message)
        merges = list(function(view))
        begun["state"] = view.state
        lines.send("merges", merges=merges, state=view.state)

    lines.serve("merge_policy", {"begin": begin, "merge": merge})

"""Results: what was measured elsewhere goes into a database, and what is in one comes out."""

from __future__ import annotations

import json
import os
import sqlite3
import tempfile
from pathlib import Path
from typing import Any, Iterable, Mapping, Optional, Sequence, Union

from mtil.data import Task, whole_numbers
from mtil.program import call, setting_words, table_of, text_of


class Results:
    """A results database."""

    def __init__(self, database: Union[str, os.PathLike]):
        self.database = os.fspath(database)

    def query(self, question: str, **filters: Any) -> Any:
        """`mtil query`: a question by name (mtil list questions), or a SELECT. Filters are its options: seed=[1, 2],
        method="lwf", by="merge.every", published=True. pandas.DataFrame, or a list of dicts without pandas."""
        options = [f"--{key.replace('_', '-')}" + ("" if value is True else f"={text_of(value)}")
                   for key, value in filters.items()]
        return table_of(json.loads(call(["query", self.database, question, "--format=json", *options])))

    def view(self, name: str) -> Any:
        """All rows of a table or view, as SQLite has them. pandas.DataFrame, or a list of dicts without pandas."""
        uri = f"{Path(self.database).absolute().as_uri()}?mode=ro"
        quoted = name.replace('"', '""')
        connection = sqlite3.connect(uri, uri=True)
        try:
            connection.row_factory = sqlite3.Row
            return table_of([dict(row) for row in connection.execute(f'SELECT * FROM "{quoted}"')])
        finally:
            connection.close()


def read(database: Union[str, os.PathLike] = "results.db") -> Results:
    """The results in a database, which is only read."""
    return Results(database)


class record:
    """Collects what was computed elsewhere, and stores it as a run at the end of the `with`, if there was no exception.

        with mtil.record("results.db", "mini", method="probe", seed=1, options={"lr": 0.1}) as run:
            run.predictions(0, task, labels)    # after task 0, labels [N] of task.test in its order; -1: before all
        or  run.accuracies([71.2, None, …])     # a row [tasks] after each task; None: not measured

    options: of the method, as method.options.KEY has them. unit: of accuracies, "percent" or "share". note: a text.
    settings, keywords: of the suite, as for mtil.tasks.
    """

    def __init__(self, database: Union[str, os.PathLike], suite: str, method: str, seed: int = 1,
                 unit: str = "percent", options: Optional[Mapping[str, Any]] = None, note: Optional[str] = None,
                 settings: Optional[Mapping[str, Any]] = None, **keywords: Any):
        self.words = ["import", os.fspath(database), suite, *setting_words(settings, keywords), "-",
                      f"--method={method}", f"--seed={seed}", f"--unit={unit}"]
        self.words += [f"--note={note}"] if note is not None else []
        self.options = options
        self.lines: list[str] = []

    def predictions(self, after_task: int, task: Union[Task, str], predicted: Iterable[int]) -> None:
        self.lines.append(json.dumps({"after_task": after_task, "task": getattr(task, "name", task),
                                      "predicted": whole_numbers(predicted)}))

    def accuracies(self, row: Sequence[Optional[float]]) -> None:
        self.lines.append(json.dumps({"acc_per_task": list(row)}))

    def __enter__(self) -> record:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is not None:
            return
        with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as options:
            json.dump(self.options, options)
            options.flush()
            settings = [f"--settings={options.name}"] if self.options else []
            call(self.words + settings, "\n".join(self.lines) + "\n")

"""The program mtil: where it is, and how it is called."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Mapping, Optional


class Error(RuntimeError):
    """The message of mtil where it refused or failed."""


def program() -> str:
    """The path of the program: $MTIL, else bin/mtil in this package, as a wheel has it, else mtil in PATH."""
    named = os.environ.get("MTIL")
    found = shutil.which(named or str(Path(__file__).parent / "bin" / "mtil")) or (not named and shutil.which("mtil"))
    if not found:
        raise Error(f"there is no program {named}, which MTIL names" if named else
                    "there is no program mtil in PATH; set MTIL to its path, as in MTIL=build/mtil")
    return found


def main() -> None:
    """The command mtil of a wheel: the wheel's program takes the place of this process."""
    path = str(Path(__file__).parent / "bin" / "mtil")
    os.execv(path, [path, *sys.argv[1:]])


def text_of(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(text_of, value)) if isinstance(value, (list, tuple)) else str(value)


def setting_words(settings: Optional[Mapping[str, Any]], keywords: Mapping[str, Any]) -> list[str]:
    """KEY=VALUE of a dict with the keys of a suite, and of keyword arguments with __ for the dots."""
    named = {key.replace("__", "."): value for key, value in keywords.items()}
    return [f"{key}={text_of(value)}" for key, value in {**(settings or {}), **named}.items()]


def table_of(rows: list[dict[str, Any]]) -> Any:
    """A pandas.DataFrame where pandas is installed, else the rows."""
    try:
        return importlib.import_module("pandas").DataFrame(rows)
    except ModuleNotFoundError:
        return rows


def failure(words: list[str], status: int, messages: str) -> Error:
    lines = [f"mtil {words[0]}: exit status {status}", *messages.strip().splitlines()]
    told = [line for line in lines if line.startswith("mtil: error: ")] or lines
    return Error(told[-1].replace("mtil: error: ", "", 1))


def call(words: list[str], given: Optional[str] = None) -> str:
    """The standard output of `mtil WORDS`; given: its standard input."""
    done = subprocess.run([program(), *words], input=given, stdin=None if given is not None else subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", errors="surrogateescape")
    if done.returncode != 0:
        raise failure(words, done.returncode, done.stderr)
    return done.stdout


def run(suite: str, seed: Optional[int] = None, settings: Optional[Mapping[str, Any]] = None, **keywords: Any) -> Any:
    """`mtil run`: trains, tests and stores, or goes on where the same call was interrupted; progress to sys.stderr.

    Returns the accuracy matrix, a row after each task: pandas.DataFrame, or a list of dicts without pandas.
    settings: {"data.order": "mnist,dtd"}; keywords likewise, with __ for a dot: data__order="mnist,dtd".
    """
    seeds = [f"--seed={seed}"] if seed is not None else []
    words = ["run", suite, *setting_words(settings, keywords), "--format=json", *seeds]
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        # in a session of its own: one Ctrl-C is one request to stop
        process = subprocess.Popen([program(), *words], stdin=subprocess.DEVNULL, stdout=output, encoding="utf-8",
                                   stderr=subprocess.PIPE, errors="replace", start_new_session=True)
        messages = []
        try:
            for line in process.stderr:
                sys.stderr.write(line)
                messages.append(line)
        except BaseException:
            process.send_signal(signal.SIGINT)
            raise
        finally:
            process.stderr.close()
            process.wait()
        if process.returncode != 0:
            raise failure(words, process.returncode, "".join(messages))
        output.seek(0)
        return table_of(json.load(output))

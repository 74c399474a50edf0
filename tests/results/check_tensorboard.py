"""TensorBoard's own reader finds in the exported files what is in the database.

    check_tensorboard.py WRITE_SAMPLE MTIL
"""

import math
import pathlib
import sqlite3
import subprocess
import sys
import tempfile

try:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
except ImportError:
    print("skipped: no tensorboard; MTIL_PYTHON names a Python that has it")
    sys.exit(77)


def read(folder):
    events = EventAccumulator(str(folder), size_guidance={"scalars": 0, "tensors": 0})
    events.Reload()
    return events


def check_run(events, database, run):
    def points(tag):
        return [(event.step, event.value) for event in events.Scalars(tag)]

    def check(tag, sql):
        expected = database.execute(sql, (run,)).fetchall()
        found = points(tag)
        assert len(expected) == len(found), f"{tag}: {len(expected)} in the database, {len(found)} read"
        for (step, value), (found_step, found_value) in zip(expected, found):
            assert step == found_step and math.isclose(value, found_value, rel_tol=1e-6), (tag, step, value, found_value)

    check("training/loss", "SELECT task * 20 + iteration, loss FROM steps WHERE run = ? ORDER BY 1")
    check("training/learning_rate", "SELECT task * 20 + iteration, learning_rate FROM steps WHERE run = ? ORDER BY 1")
    for name, in database.execute("SELECT name FROM tasks WHERE run = ?", (run,)):
        check(
            f"accuracy/{name}",
            f"SELECT after_task + 1, accuracy FROM matrix WHERE run = ? AND name = '{name}' ORDER BY 1",
        )
    for metric in ("transfer", "average", "last", "forgetting", "backward_transfer", "gain", "zero_shot"):
        check(f"metrics/{metric}", f"SELECT 4, {metric} FROM metrics WHERE run = ?")
    times = [event.wall_time for event in events.Scalars("training/loss")]
    assert times == sorted(times) and times[-1] > times[0]

    def text(tag):
        return events.Tensors(tag)[0].tensor_proto.string_val[0].decode()

    policy, seed = database.execute("SELECT policy, seed FROM runs WHERE run = ?", (run,)).fetchone()
    assert events.PluginTagToContent("text").keys() == {"run", "hyperparameters"}
    assert f"| policy | {policy} |" in text("run") and f"| seed | {seed} |" in text("run")
    assert f"| merge.policy | {policy} |" in text("hyperparameters")
    assert "| note | a \\| b |" in text("hyperparameters")


def main():
    write_sample, mtil = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/results.db"
        subprocess.run([write_sample, path], check=True)
        for _ in range(2):  # the second time replaces the files of the first
            subprocess.run([mtil, "export", path, "--tensorboard", f"{folder}/logs", "--quiet"], check=True)
        files = sorted(pathlib.Path(folder, "logs").rglob("*tfevents*"))
        database = sqlite3.connect(path)
        runs = database.execute("SELECT run, policy, seed, suite_hash FROM runs").fetchall()
        assert len(files) == len(runs)
        for run, policy, seed, digest in runs:
            name = pathlib.Path(folder, "logs", "sample", f"adapters-{policy}-{digest[:12]}", f"seed{seed}")
            check_run(read(name), database, run)
        print(f"{len(runs)} runs: TensorBoard reads what the database holds")


main()

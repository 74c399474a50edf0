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
    from tensorboard import context
    from tensorboard.backend.event_processing import data_provider, plugin_event_multiplexer
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugins import base_plugin
    from tensorboard.plugins.hparams import api_pb2, backend_context, list_session_groups
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
    for metric in ("transfer", "average", "last", "forgetting", "backward_transfer",
                   "forward_transfer", "gain", "zero_shot"):
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


def check_groups(logs, database):
    """The tab HParams shows a row per configuration, whose metrics are means over its seeds."""
    events = plugin_event_multiplexer.EventMultiplexer()
    events.AddRunsFromDirectory(str(logs))
    events.Reload()
    provider = data_provider.MultiplexerDataProvider(events, str(logs))
    request = api_pb2.ListSessionGroupsRequest(
        slice_size=100, aggregation_type=api_pb2.AGGREGATION_AVG, allowed_statuses=[api_pb2.STATUS_SUCCESS])
    backend = backend_context.Context(base_plugin.TBContext(data_provider=provider, logdir=str(logs)))
    groups = list_session_groups.Handler(context.RequestContext(), backend, "", request).run().session_groups
    expected = database.execute("SELECT suite_hash, method, policy, runs, last FROM leaderboard").fetchall()
    assert len(groups) == len(expected) > 1
    for digest, method, policy, runs, last in expected:
        (group,) = [group for group in groups if group.name == digest]
        assert group.hparams["method"].string_value == method and group.hparams["policy"].string_value == policy
        assert set(group.hparams) == {"suite", "method", "policy"}, group.hparams  # all else is the same
        (mean,) = [metric.value for metric in group.metric_values if metric.name.tag == "metrics/last"]
        assert len(group.sessions) == runs and math.isclose(mean, last, rel_tol=1e-6), (mean, last)


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
        check_groups(pathlib.Path(folder, "logs"), database)
        print(f"{len(runs)} runs: TensorBoard reads what the database holds")


main()

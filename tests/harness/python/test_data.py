"""mtil.tasks is what a run reads; mtil.record and mtil.read put results into a database and take them out."""

import json
import pathlib
import struct
import subprocess
import unittest

from support import MTIL, PROGRAMS, WorkTest, data

import mtil

ORDER = "mnist,dtd"
SETTINGS = {"data.root": str(data)}


class DataTest(WorkTest):
    def tasks(self):
        return mtil.tasks("mini", settings=SETTINGS, data__order=ORDER)

    def test_list(self):
        listed = subprocess.run([MTIL, "data", "list", "mini", f"data.root={data}", f"data.order={ORDER}", "--quiet"],
                                capture_output=True, check=True, encoding="utf-8", timeout=120).stdout
        records = [json.loads(line) for line in listed.splitlines()]
        headers = [record for record in records if "classes" in record]
        tasks = self.tasks()
        self.assertEqual(len(tasks), len(headers))
        for task, header in zip(tasks, headers):
            for key in ("name", "classes", "prompts", "templates", "label_offset"):
                self.assertEqual(getattr(task, key), header[key])
            for part, items in (("train", task.train), ("test", task.test)):
                found = [r for r in records if r.get("part") == part and r["task"] == task.index]
                self.assertEqual(items.labels, [r["label"] for r in found])
                self.assertEqual(len(items), header[f"{part}_items"])
                self.assertTrue(all(pathlib.Path(path).exists() for path in items.paths))
                if "record" not in found[0]:
                    self.assertEqual(items.paths, [r["path"] for r in found])
        self.assertTrue(tasks[0].train.paths[0].endswith(".png"))
        self.assertEqual([task.train.paths for task in self.tasks()], [task.train.paths for task in tasks])

    def test_native_run(self):
        mtil.run("mini", settings={**SETTINGS, "training.iterations": 2, "training.warmup": 1, "merge.policy": "none"},
                 data__order="dtd")
        stored = dict(self.rows("SELECT task, labels FROM test_labels"))
        counts = self.rows("SELECT name, classes, training_images, test_images FROM tasks")
        tasks = mtil.tasks("mini", settings=SETTINGS, data__order="dtd")
        self.assertEqual(counts, [(t.name, len(t.classes), len(t.train), len(t.test)) for t in tasks])
        for task in tasks:
            labels = stored[task.index]
            self.assertEqual(list(struct.unpack(f"<{len(labels) // 2}H", labels)), task.test.labels)

    def test_items(self):
        items = mtil.Items(["a", "b", "c"], [0, 1, 2])
        self.assertEqual((items[1:].paths, items[-2:].labels, len(items.map(str))), (["b", "c"], [1, 2], 3))
        try:
            from PIL import Image
        except ModuleNotFoundError:
            self.skipTest("no PIL; MTIL_PYTHON names a Python that has it")
        Image.new("L", (3, 2), 7).save("image.png")
        image, label = mtil.Items(["image.png"], [4])[0]
        self.assertEqual((image.mode, image.size, label), ("RGB", (3, 2), 4))
        self.assertEqual(mtil.Items(["image.png"], [4], lambda image: image.size)[0], ((3, 2), 4))

    def test_errors(self):
        with self.assertRaisesRegex(mtil.Error, "ordre"):
            mtil.tasks("mini", settings=SETTINGS, data__ordre="dtd")
        with self.assertRaisesRegex(mtil.Error, "results.db"):
            mtil.read("results.db").query("leaderboard")

    def run_counting(self):
        command = self.external(PROGRAMS / "counting.py", order="dtd")
        return mtil.run("mini", settings=dict(word.split("=", 1) for word in command[3:]), seed=2)

    def test_read(self):
        matrix = self.run_counting()
        matrix = matrix if isinstance(matrix, list) else matrix.to_dict("records")
        shares = [100 * correct / images for correct, images in
                  self.rows("SELECT correct, images FROM evaluations WHERE after_task = 0")]
        self.assertEqual([row["dtd"] for row in matrix if row["after"] == "dtd"], shares)
        results = mtil.read("results.db")
        for table in (results.query("leaderboard", seed=[2]), results.view("runs")):
            rows = table if isinstance(table, list) else table.to_dict("records")
            self.assertEqual([row["method"] for row in rows], ["external"])
        self.assertEqual(len(results.view("steps")), 5)
        with self.assertRaisesRegex(mtil.Error, 'unknown seed "1"'):
            results.query("leaderboard", seed=1)
        for name, in self.rows("SELECT name FROM sqlite_schema WHERE type = 'view'"):
            results.view(name)

    def test_record(self):
        if subprocess.run([MTIL, "import", "--help"], capture_output=True, check=False, timeout=60).returncode != 0:
            self.skipTest("this mtil has no import")
        self.run_counting()
        task = mtil.tasks("mini", settings=SETTINGS, data__order="dtd")[0]
        predicted = [i % 10 for i in range(len(task.test))]
        with mtil.record("results.db", "mini", method="guess", seed=2, options={"lr": 0.5}, note="a note",
                         settings=SETTINGS, data__order="dtd") as run:
            run.predictions(0, task, predicted)
        right = sum(a == b for a, b in zip(predicted, task.test.labels))
        self.assertEqual(self.rows("SELECT correct, images FROM evaluations WHERE run = 2"), [(right, len(predicted))])
        with mtil.record("results.db", "mini", method="told", seed=2, settings=SETTINGS, data__order="dtd") as run:
            run.accuracies([50])
        self.assertEqual(self.rows("SELECT correct, images FROM evaluations WHERE run = 3"), [(100, 200)])
        with self.assertRaises(ZeroDivisionError):
            with mtil.record("results.db", "mini", method="lost", settings=SETTINGS, data__order="dtd") as run:
                run.accuracies([1 / 0])
        self.assertEqual(self.rows("SELECT count(*) FROM runs"), [(3,)])
        self.verify()


if __name__ == "__main__":
    unittest.main()

"""What the tests of the package share: the program and small datasets, a place to work in, and runs of programs."""

import os
import pathlib
import re
import sqlite3
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).parent
SOURCES = HERE.parents[2]
PACKAGE = SOURCES / "harness" / "python"
PROGRAMS = HERE / "programs"
MTIL = os.environ["MTIL"]

sys.path.insert(0, str(PACKAGE))
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(PACKAGE), os.environ.get("PYTHONPATH")]))
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
place = tempfile.TemporaryDirectory()
os.environ["XDG_CACHE_HOME"] = str(pathlib.Path(place.name) / "cache")
data = pathlib.Path(place.name) / "mini"


class WorkTest(unittest.TestCase):
    """In a folder of its own, with the small datasets that mtil draws."""

    @classmethod
    def setUpClass(cls):
        if not data.exists():
            subprocess.run([MTIL, "data", "mini", "--quiet", data], check=True, timeout=300)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)

    def words(self, *settings):
        return [MTIL, "run", "mini", f"data.root={data}", *settings]

    def external(self, *command, order="dtd,eurosat", label="program"):
        """Of a run of a program in Python as the method."""
        words = " ".join(map(str, (sys.executable, *command)))
        return self.words(f"data.order={order}", "method.name=external", f"method.command={words}",
                          f"method.label={label}")

    def run_to_end(self, words):
        done = subprocess.run([*words, "--quiet"], capture_output=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr.decode(errors="replace"))
        return done

    def rows(self, query, database="results.db"):
        connection = sqlite3.connect(self.folder / database)
        self.addCleanup(connection.close)
        return connection.execute(query).fetchall()

    def verify(self):
        done = subprocess.run([MTIL, "verify", "results.db"], capture_output=True, encoding="utf-8", timeout=300)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertFalse(re.search(r" [1-9]\d*$", done.stdout, re.MULTILINE), done.stdout)


class Gate:
    """Where a program waits for the test: it says that it is there, and goes on when it is let."""

    def __init__(self, folder):
        self.here, self.go = folder / "here", folder / "go"
        for path in (self.here, self.go):
            os.mkfifo(path)
        os.environ["GATE"] = str(folder)

    def wait(self):
        """Until the program is there. What is returned ends with the program: its read() waits for that."""
        del os.environ["GATE"]
        return open(self.here, encoding="utf-8")

    def open(self):
        with open(self.go, "w", encoding="utf-8"):
            pass

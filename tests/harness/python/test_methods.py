"""A method in Python stands in a run as any other: its rows, a stop, a kill."""

import os
import signal
import subprocess
import unittest

from support import PROGRAMS, Gate, WorkTest

TABLES = ("SELECT task, after_task, correct, images FROM evaluations ORDER BY 1, 2",
          "SELECT task, after_task, kind, data FROM per_image ORDER BY 1, 2",
          "SELECT task, labels FROM test_labels ORDER BY 1",
          "SELECT task, iteration, loss, learning_rate FROM steps ORDER BY 1, 2")


class MethodTest(WorkTest):
    def all_rows(self):
        return [self.rows(query) for query in TABLES]

    def expected(self):
        """Of a run that nobody stops; what the program is told to wait for is not part of it."""
        self.run_to_end(self.external(PROGRAMS / "counting.py", 9, 9))
        expected = self.all_rows()
        os.rename("results.db", "whole.db")
        return expected

    def test_rows(self):
        evaluations, per_image, _, steps = self.expected()
        self.assertEqual([row[:2] for row in evaluations], [(0, -1), (0, 0), (0, 1), (1, -1), (1, 0), (1, 1)])
        self.assertEqual([row[:2] for row in per_image], [row[:2] for row in evaluations])
        self.assertEqual([row[:2] for row in steps], [(task, step) for task in (0, 1) for step in range(1, 6)])
        self.assertEqual({row[3] for row in steps}, {0.5})
        logs = list(self.folder.glob("runs/*/seed1/program.log"))
        self.assertIn("this goes to the log", logs[0].read_text())

    def held(self, task, step):
        """A run that has come to this step, and the descriptor that ends with its program."""
        gate = Gate(self.folder)
        words = self.external(PROGRAMS / "counting.py", task, step)
        process = subprocess.Popen([*words, "--quiet"], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
        self.addCleanup(process.stderr.close)
        return words, process, gate, gate.wait()

    def test_stopped(self):
        for task, step in ((0, 2), (1, 4)):
            with self.subTest(task=task, step=step):
                expected = self.expected()
                words, process, gate, program = self.held(task, step)
                process.send_signal(signal.SIGINT)
                gate.open()
                message = process.communicate(timeout=120)[1].decode()
                program.close()
                self.assertEqual(process.returncode, 130, message)
                self.assertNotIn("it is ended", message)
                self.run_to_end(words)
                self.assertEqual(self.all_rows(), expected)
                self.verify()
                for name in ("results.db", "whole.db", "here", "go"):
                    os.remove(name)

    def test_killed(self):
        expected = self.expected()
        words, process, _, program = self.held(1, 3)
        process.kill()
        process.communicate(timeout=60)
        program.read()  # returns once the program has ended, too
        program.close()
        self.run_to_end(words)
        self.assertEqual(self.all_rows(), expected)
        self.verify()


if __name__ == "__main__":
    unittest.main()

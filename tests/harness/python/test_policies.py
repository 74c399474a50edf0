"""most_used and similar, written in Python, have the bits of those in C."""

import os
import signal
import subprocess
import sys
import unittest

from support import PACKAGE, PROGRAMS, Gate, WorkTest

EXAMPLES = PACKAGE / "examples"


class PolicyTest(WorkTest):
    def settings(self, *more):
        short = "training.iterations=12", "training.warmup=2", "merge.every=4"
        return self.words("data.order=dtd,eurosat", *short, *more)

    def command(self, *more):
        words = " ".join(map(str, (sys.executable, *more)))
        return self.settings("merge.policy=external", f"merge.command={words}")

    def results(self):
        """Losses, what was merged, and the digest of the experts."""
        found = (self.rows("SELECT task, iteration, loss FROM steps ORDER BY 1, 2"),
                 self.rows("SELECT task, iteration, encoder, block, t1, t2, target FROM expert_events "
                           "WHERE event = 'merge' ORDER BY 1, 2, 3, 4, position"),
                 self.rows("SELECT task, kind, digest FROM artifacts WHERE kind = 'adapters'"),
                 self.rows("SELECT task, after_task, correct FROM evaluations ORDER BY 1, 2"))
        self.assertTrue(all(found))
        return found

    def check(self, policy):
        self.run_to_end(self.settings(f"merge.policy={policy}"))
        expected = self.results()
        os.remove("results.db")
        example = EXAMPLES / f"{policy}.py"
        self.run_to_end(self.command(example))
        self.assertEqual(self.results(), expected)
        os.remove("results.db")

        gate = Gate(self.folder)
        words = self.command(PROGRAMS / "held_policy.py", example, 1, 8)
        process = subprocess.Popen([*words, "--quiet"], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
        with gate.wait():
            process.send_signal(signal.SIGINT)
            gate.open()
            message = process.communicate(timeout=120)[1].decode()
        self.assertEqual(process.returncode, 130, message)
        self.run_to_end(words)
        self.assertEqual(self.results(), expected)
        self.verify()

    def test_most_used(self):
        self.check("most_used")

    def test_similar(self):
        self.check("similar")

    def test_closest(self):
        self.run_to_end(self.command(EXAMPLES / "closest.py"))
        self.assertTrue(self.rows("SELECT * FROM expert_events WHERE event = 'merge'"))
        self.verify()


if __name__ == "__main__":
    unittest.main()

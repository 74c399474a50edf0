"""The examples in PyTorch run, and learn something."""

import importlib.util
import subprocess
import sys
import unittest

from support import PACKAGE, WorkTest

missing = [name for name in ("torch", "torchvision") if importlib.util.find_spec(name) is None]
if missing:
    print(f"skipped: no {', '.join(missing)}; MTIL_PYTHON names a Python that has torchvision")
    sys.exit(77)


class ExampleTest(WorkTest):
    def check(self, name, order, *more):
        words = self.external(PACKAGE / "examples" / f"{name}.py", *more, order=order, label=name)
        self.run_to_end([*words, "data.shots=8", "method.options.epochs=2"])
        right = self.rows("SELECT correct, images FROM evaluations WHERE task = 0 AND after_task = 0")
        self.assertTrue(right and all(correct > 0 for correct, _ in right))
        losses = [loss for loss, in self.rows("SELECT loss FROM steps WHERE task = 0 ORDER BY iteration")]
        self.assertLess(losses[-1], losses[0])
        self.verify()

    def test_linear_probe(self):
        self.check("linear_probe", "dtd")

    def test_finetune(self):
        self.check("finetune", "eurosat,dtd")

    def test_lwf(self):
        self.check("lwf", "eurosat,dtd")


if __name__ == "__main__":
    unittest.main()

"""Whatever a program answers, the run ends with one line that says what was expected, and the database is sound."""

import importlib.util
import pathlib
import subprocess
import unittest

from support import MTIL, PROGRAMS, WorkTest

specification = importlib.util.spec_from_file_location("hostile", PROGRAMS / "hostile.py")
hostile = importlib.util.module_from_spec(specification)
specification.loader.exec_module(hostile)


class HostileTest(WorkTest):
    def check(self, name):
        words = self.external("-S", PROGRAMS / "hostile.py", name, order="dtd", label="program")
        done = subprocess.run([*words, "--quiet", "method.timeout=1" if name == "hangs" else "method.timeout=30"],
                              capture_output=True, timeout=60)
        said = done.stderr.decode()
        self.assertIn(done.returncode, range(1, 126), said)
        self.assertRegex(said, r"\Amtil: error: [^\n\x00-\x1f\x7f]+\n\Z")
        self.assertLess(len(said), 2000)
        self.assertRegex(said, hostile.CASES[name][2])
        verified = subprocess.run([MTIL, "verify", "results.db"], capture_output=True, encoding="utf-8", timeout=60)
        self.assertEqual(verified.returncode, 0, verified.stdout + verified.stderr)
        for path in pathlib.Path().glob("labels.npy"):
            path.unlink()


def test_of(name):
    return lambda self: self.check(name)


for case in hostile.CASES:
    setattr(HostileTest, f"test_{case}", test_of(case))


if __name__ == "__main__":
    unittest.main()

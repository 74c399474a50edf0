"""A method whose predictions follow from all that it has seen: what is lost or done twice by a stop shows in the rows.

counting.py [TASK STEP]: waits at the gate in that step.
"""

import json
import os
import sys

import gate

import mtil

PLACE = tuple(map(int, sys.argv[1:3]))


class Counting(mtil.Method):
    version = "3"
    parameters = 2
    zero_shot = True

    def begin(self):
        print("this goes to the log, not to mtil")
        self.seen = [self.seed]

    def train(self, task):
        for step in range(1, 6):
            self.seen.append((self.seen[-1] * 31 + sum(task.train.labels[: step * 7]) + task.index) % 10007)
            if PLACE == (task.index, step):
                gate.wait()
            yield step, 5, self.seen[-1] / 10007, 0.5

    def predict(self, task, after_task):
        return [(self.seen[-1] // (1 + i % 5) + after_task + 1) % len(task.classes) for i in range(len(task.test))]

    def save(self, folder):
        with open(os.path.join(folder, "seen.json"), "w", encoding="utf-8") as file:
            json.dump(self.seen, file)

    def load(self, folder, after_task):
        with open(os.path.join(folder, "seen.json"), encoding="utf-8") as file:
            self.seen = json.load(file)
        assert len(self.seen) == 1 + 5 * (after_task + 1)


mtil.serve(Counting())

"""Learning without Forgetting (Li and Hoiem, ECCV 2016), finetune.py's network: on the new task's images, the heads
of earlier tasks go on answering as before it.

    mtil run SUITE method.name=external method.command="python3 lwf.py" method.files="finetune.py, lwf.py"

method.options.weight (λ, 1) and method.options.temperature (T, 2).
"""

import copy

import torch
from finetune import Finetune

import mtil


class LwF(Finetune):
    def train(self, task):
        self.teacher = copy.deepcopy(self.model).requires_grad_(False)
        yield from super().train(task)

    def loss(self, task, images, labels):
        total = super().loss(task, images, labels)
        weight, temperature = self.options.get("weight", 1), self.options.get("temperature", 2)
        features, before = self.model["body"](images), self.teacher["body"](images)
        for earlier in range(task.index):
            answers = self.model["heads"][earlier](features) / temperature
            targets = (self.teacher["heads"][earlier](before) / temperature).softmax(1)
            total = total + weight * temperature**2 * torch.nn.functional.cross_entropy(answers, targets)
        return total


mtil.serve(LwF())

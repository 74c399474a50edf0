"""Fine-tuning of a small convolutional network, a head for each task, without any care for earlier tasks.

    mtil run SUITE method.name=external method.command="python3 finetune.py" method.options.epochs=3
"""

import os

import torch
from torch.utils.data import DataLoader, RandomSampler
from torchvision.transforms import Compose, Resize, ToTensor

import mtil

SIZE = Compose([Resize((32, 32)), ToTensor()])


class Finetune(mtil.Method):
    def begin(self):
        torch.manual_seed(self.seed)
        torch.set_num_threads(self.threads)
        sizes = (3, 32, 64, 128)
        layers = [[torch.nn.Conv2d(m, n, 3, stride=2), torch.nn.ReLU()] for m, n in zip(sizes, sizes[1:])]
        body = torch.nn.Sequential(*sum(layers, []), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten())
        heads = torch.nn.ModuleList(torch.nn.Linear(128, len(task.classes)) for task in self.tasks)
        self.model = torch.nn.ModuleDict({"body": body, "heads": heads}).to(self.device)
        self.parameters = sum(p.numel() for p in self.model.parameters())

    def loss(self, task, images, labels):
        return torch.nn.functional.cross_entropy(self.scores(task, images), labels)

    def scores(self, task, images):
        return self.model["heads"][task.index](self.model["body"](images.to(self.device)))

    def train(self, task):
        torch.manual_seed(self.seed * 1000 + task.index)
        order = RandomSampler(task.train, num_samples=self.options.get("epochs", 3) * len(task.train))
        batches = DataLoader(task.train.map(SIZE), 32, sampler=order)
        optimizer = torch.optim.Adam(self.model.parameters(), self.options.get("lr", 1e-3))
        for step, (images, labels) in enumerate(batches, 1):
            loss = self.loss(task, images.to(self.device), labels.to(self.device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            yield step, len(batches), loss.item()

    def predict(self, task, after_task):
        with torch.no_grad():
            batches = DataLoader(task.test.map(SIZE), 256)
            return torch.cat([self.scores(task, images).argmax(1) for images, _ in batches])

    def save(self, folder):
        torch.save(self.model.state_dict(), os.path.join(folder, "model.pt"))

    def load(self, folder, after_task):
        self.model.load_state_dict(torch.load(os.path.join(folder, "model.pt"), map_location=self.device))


if __name__ == "__main__":
    mtil.serve(Finetune())

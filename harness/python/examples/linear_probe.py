"""A linear probe: logistic regression on the features of a convolutional network that stays as it is.

    mtil run SUITE method.name=external method.command="python3 linear_probe.py"

method.options.network is a network that torch.save(network, FILE) wrote; without it, random convolutions are taken.
"""

import os

import torch
from torch.utils.data import DataLoader
from torchvision.transforms import Compose, Resize, ToTensor

import mtil

SIZE = Compose([Resize((64, 64)), ToTensor()])


class LinearProbe(mtil.Method):
    def begin(self):
        torch.manual_seed(self.seed)
        torch.set_num_threads(self.threads)
        self.network = torch.load(self.options["network"]) if "network" in self.options else torch.nn.Sequential(
            torch.nn.Conv2d(3, 256, 8, stride=2), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(4))
        self.network.eval().to(self.device)
        self.probes = {}  # one a task, so that nothing is forgotten

    def features(self, items):
        with torch.no_grad():
            batches = [self.network(images.to(self.device)) for images, _ in DataLoader(items.map(SIZE), 256)]
        features = torch.cat(batches).flatten(1)
        return torch.nn.functional.normalize(features - features.mean(1, keepdim=True))

    def train(self, task):
        features, labels = self.features(task.train), torch.tensor(task.train.labels, device=self.device)
        torch.manual_seed(self.seed)
        probe = self.probes[task.index] = torch.nn.Linear(features.shape[1], len(task.classes)).to(self.device)
        optimizer = torch.optim.Adam(probe.parameters(), self.options.get("lr", 0.05), weight_decay=1e-5)
        for step in range(1, 201):
            loss = torch.nn.functional.cross_entropy(probe(features), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            yield step, 200, loss.item()

    def predict(self, task, after_task):
        if task.index > after_task:
            return [0] * len(task.test)
        with torch.no_grad():
            return self.probes[task.index](self.features(task.test)).argmax(1)

    def save(self, folder):
        torch.save(self.probes, os.path.join(folder, "probes.pt"))

    def load(self, folder, after_task):
        self.probes = torch.load(os.path.join(folder, "probes.pt"), map_location=self.device)


mtil.serve(LinearProbe())

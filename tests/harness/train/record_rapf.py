"""Records what RAPF's public code computes: the fixture of test_rapf.c.

    git clone https://github.com/linlany/RAPF
    /usr/bin/python3 tests/harness/train/record_rapf.py RAPF tests/fixtures/rapf.safetensors

main.py and continual_clip/models.py run unchanged, in f64, on three tasks of two classes whose features the test draws again: an image
is its number, and the towers look its features up. Nothing is shuffled, and normal numbers are drawn as the test draws them. The
file has the loss of every step, the layer before and after each fusion, and the scores of test images after the last task, without
and with the public code's shrinkage. Needs torch alone.
"""
import pathlib
import random
import sys
import types

import torch

sys.path.append(str(pathlib.Path(__file__).parents[2]))
from recording import draw, write

WIDTH, PER_CLASS, CLASSES, PER_TASK, TESTS = 5, 10, 6, 2, 7
SETTINGS = {"train_batch_size": 8, "lr": 0.001, "milestones": [4, 10], "epochs": 15, "beta": 0.5, "mix_bias": 0.6,
            "dataset": "cifar100", "prompt_template": "{}", "workdir": "", "class_order": "", "num_workers": 0, "batch_size": 99,
            "initial_increment": PER_TASK, "increment": PER_TASK, "log_path": "/dev/null", "fp16": False}


class Anything:
    """Stands for what the public code imports and does not use here."""

    def __init__(self, *ignored, **named):
        pass

    def __getattr__(self, name):
        return 0.0 if name.startswith(("acc", "avg", "average", "forg", "back", "forw")) else lambda *ignored, **named: None


def public_code(folder):
    decorator = lambda *ignored, **named: lambda function: function
    tokens = lambda names: torch.zeros(len(names), 2)
    for name, members in {"hydra": {"main": decorator}, "omegaconf": {"DictConfig": Anything, "OmegaConf": Anything}, "yaml": {},
                          "continuum.metrics": {"Logger": Logger}, "tqdm": {"tqdm": Bar}, "clip": {"tokenize": tokens},
                          "continual_clip.datasets": {"build_cl_scenarios": None}}.items():
        sys.modules[name] = types.ModuleType(name)
        vars(sys.modules[name]).update(members)
    sys.path.insert(0, folder)
    import main
    from continual_clip import models
    return main, models


class Logger(Anything):
    accuracy_per_task = []


class Bar(list):
    def __init__(self, batches):
        super().__init__(batches)

    def set_description(self, text):
        pass


class Scenario(list):
    """A list of tasks; a part of it is the images of all of its tasks."""

    def __getitem__(self, index):
        return sum(list(self)[index], []) if isinstance(index, slice) else super().__getitem__(index)


def train(main, models, world, threshold, shrinkage):
    features, texts, tests, start = world
    images = torch.cat([features.flatten(0, 1), tests])
    cfg = types.SimpleNamespace(threshold=threshold, shrinkage=shrinkage, **SETTINGS)
    model = models.ClassIncrementalCLIP.__new__(models.ClassIncrementalCLIP)
    torch.nn.Module.__init__(model)
    vars(model).update(cfg=cfg, prompt_template="{}", device="cpu", dtype=torch.float64, clip_type=torch.float64, transforms=None,
                       current_class_names=[], class_ids_per_task=torch.arange(CLASSES).split(PER_TASK), old_adapter=None,
                       class_mean_list=[], class_cov_list=[], class_edge_distance=[], mix_b=cfg.mix_bias,
                       logit_scale=torch.tensor(100.0, dtype=torch.float64).log(),
                       encode_text=lambda tokens: texts[:len(tokens)], encode_image=lambda image: images[image.long()])
    model.adapter = torch.nn.Linear(WIDTH, WIDTH, bias=False, dtype=torch.float64)
    model.adapter.weight.data = start.clone()
    losses, layers, scores = [], [], []
    backward, mix, forward, watched = torch.Tensor.backward, model.mix_matrix, model.forward, []

    def mix_matrix():
        layers.append(model.adapter.weight.data.clone())
        mix()
        layers.append(model.adapter.weight.data.clone())

    model.mix_matrix = mix_matrix
    model.forward = lambda *all, **named: (watched.append(forward(*all, **named)), watched[-1])[1]
    torch.Tensor.backward = lambda loss: (losses.append(loss.detach()), backward(loss))
    numbers = [[(torch.tensor(c * PER_CLASS + i), c, c // PER_TASK) for i in range(PER_CLASS)] for c in range(CLASSES)]
    trains = Scenario([sum(numbers[t:t + PER_TASK], []) for t in range(0, CLASSES, PER_TASK)])
    ends = Scenario([[(torch.tensor(CLASSES * PER_CLASS + i), 0, 0) for i in range(TESTS if t == 0 else 0)] for t in range(len(trains))])
    main.load_model = lambda cfg, device: model
    main.build_cl_scenarios = lambda cfg, is_train, transforms: (trains if is_train else ends, [str(c) for c in range(CLASSES)])
    main.run_class_incremental(cfg, "cpu")
    torch.Tensor.backward = backward
    return {"losses": torch.stack(losses), "layers": torch.stack(layers), "scores": watched[-1][0].detach()}


def record(folder, path):
    main, models = public_code(folder)
    loader, main.utils.get_class_order = main.DataLoader, lambda path: list(range(CLASSES))
    main.DataLoader = lambda images, shuffle=False, **named: loader(images, **named)
    random.shuffle = lambda order: None
    torch.randn = lambda *shape, device=None: draw(*shape, scale=12**0.5).double()
    world = [(draw(CLASSES, PER_CLASS, WIDTH, scale=2.0) + draw(CLASSES, 1, WIDTH, scale=2.0)).double(),
             draw(CLASSES, WIDTH, scale=1.0).double(), draw(TESTS, WIDTH, scale=2.0).double(), draw(WIDTH, WIDTH, scale=1.0).double()]
    expected = {}
    for name, threshold, shrinkage in (("plain", 0.7, False), ("widened", 1.3, True)):
        for part, values in train(main, models, world, threshold, shrinkage).items():
            expected[f"{name}.{part}"] = values
    write(path, "https://github.com/linlany/RAPF", expected)


record(*sys.argv[1:])

"""Records what ENGINE's public code computes: the fixture of test_engine.c.

    git clone https://github.com/LAMDA-CL/ICCV25-ENGINE
    /usr/bin/python3 tests/harness/train/record_engine.py ICCV25-ENGINE tests/fixtures/engine.safetensors

models/engine.py, utils/inc_net.py, utils/toolkit.py and utils/loss.py run unchanged, in f64, on three tasks of two classes whose
features the test draws again: an image or a text is its number, and the towers look its features up. Nothing is shuffled; noise is
drawn as the test draws it, and an image with noise has features of its own. A description of a class is another text of it, and
answers are ranked again by themselves, at the end. Features before the projection are those behind it. Gradients that PyTorch before 2.0 sets to zero in earlier
layers are taken away, so that these stay. The file has the losses of all steps, the sums of the tasks' layers after each task, and
the scores of test images, and cosines that were ranked. Needs torch alone.
"""
import pathlib
import random
import sys
import types

import torch

sys.path.append(str(pathlib.Path(__file__).parents[2]))
from recording import draw, write

WIDTH, PER_CLASS, CLASSES, PER_TASK, TESTS, PROMPTS = 5, 9, 6, 2, 7, 3
ARGS = {"init_cls": PER_TASK, "increment": PER_TASK, "batch_size": 7, "init_lr": 0.05, "weight_decay": 0.05, "min_lr": 0,
        "optimizer": "sgd", "tuned_epoch": 4, "text_des": 2, "image_aug": 0.5, "rerank": 0, "stat": 0.8, "sample_num": 0,
        "sample_noise": 0.25, "rerank_top": 5, "dataset": ""}


def public_code(folder):
    for name, members in {"timm": {}, "open_clip": {}, "tqdm": {"tqdm": list}, "torchvision": {}, "PIL": {"Image": None},
                          "torchvision.transforms": {}, "matplotlib": {}, "matplotlib.pyplot": {},
                          "models.base": {"BaseLearner": object}, "utils.data_manager": {"LaionData": None}}.items():
        sys.modules[name] = types.ModuleType(name)
        vars(sys.modules[name]).update(members)
    sys.modules["tqdm"].tqdm = type("Bar", (list,), {"set_description": lambda bar, text: None})
    sys.path.insert(0, folder)
    from models import engine
    from convs import linears
    from utils import inc_net
    linears.MLP_Adapter = lambda *ignored: torch.nn.Linear(WIDTH, WIDTH)
    return engine, inc_net


def names(classes):
    return [f"class {c}" for c in range(classes)]


def record(folder, path):
    torch.set_default_dtype(torch.float64)
    engine, inc_net = public_code(folder)
    features, views, tests, texts = [
        part.double() for part in (draw(CLASSES, PER_CLASS, WIDTH, scale=2.0) + draw(CLASSES, 1, WIDTH, scale=2.0),
                                   draw(CLASSES * PER_CLASS, WIDTH, scale=2.0), draw(TESTS, WIDTH, scale=2.0),
                                   draw(CLASSES, PROMPTS, WIDTH, scale=2.0))]
    layers = [[draw(WIDTH, WIDTH + 1, scale=1.0).double() for _ in range(2)] for _ in range(CLASSES // PER_TASK)]
    images = torch.cat([features.flatten(0, 1), tests])
    templates = [f"{{}}, prompt {p}" for p in range(PROMPTS)]
    rows = {template.format(name): texts[c, p] for c, name in enumerate(names(CLASSES)) for p, template in enumerate(templates)}

    def look_up(numbers):  # a noisy image has half a number more
        return torch.stack([views[int(i)] if i % 1 else images[int(i)] for i in numbers.double()])

    network = inc_net.Engine.__new__(inc_net.Engine)
    torch.nn.Module.__init__(network)
    noted = []  # the texts that were tokenized last
    vars(network).update(args=ARGS, visual_proj=torch.eye(WIDTH), visual_forward_=look_up, rerank=lambda *ignored: 0,
                         tokenizer=lambda texts: (noted.__setitem__(slice(None), texts), torch.zeros(len(texts)))[1])
    network.model = types.SimpleNamespace(logit_scale=torch.tensor(100.0).log(), encode_image=look_up,
                                          encode_text=lambda tokens: torch.stack([rows[text] for text in noted]))
    network.Image_Adapter, network.Text_Adapter = torch.nn.ModuleList(), torch.nn.ModuleList()
    update, task = network.update_task, iter(layers)

    def update_task():
        for parameter in network.parameters():
            parameter.grad = None
        update()
        for sides, start in zip((network.Image_Adapter, network.Text_Adapter), next(task)):
            sides[-1].weight.data, sides[-1].bias.data = start[:, :-1].clone(), start[:, -1].clone()

    network.update_task = update_task
    learner = engine.Learner.__new__(engine.Learner)
    vars(learner).update(args=ARGS, _network=network, batch_size=ARGS["batch_size"], init_lr=ARGS["init_lr"], min_lr=0, _cur_task=-1,
                         weight_decay=ARGS["weight_decay"], tuned_epoch=ARGS["tuned_epoch"], _known_classes=0, prototype=[], topk=1,
                         new_des_dict={}, des_dict={}, _device="cpu", _multiple_gpus=[], _compute_accuracy=lambda *ignored: 0,
                         _get_batch_des=lambda ignored, labels: [templates[1].format(label) for label in labels])
    numbers = lambda classes: [(0, torch.tensor(c * PER_CLASS + i), c) for c in classes for i in range(PER_CLASS)]
    manager = types.SimpleNamespace(
        get_task_size=lambda t: PER_TASK, _class_to_label=names(CLASSES), _data_to_prompt=templates,
        get_dataset=lambda classes, source, mode: numbers(classes) if source == "train" else
        [(0, torch.tensor(CLASSES * PER_CLASS + i), 0) for i in range(TESTS)])
    loader = engine.DataLoader
    engine.DataLoader = lambda images, batch_size, **ignored: loader(images, batch_size)
    engine.num_workers = 0
    random.shuffle = lambda order: None
    torch.Tensor.cuda = lambda tensor: tensor
    clamp, torch.clamp = torch.clamp, lambda values, *ignored: values
    torch.randn_like = lambda like: torch.tensor(2.0) if not like.is_floating_point() else draw(*like.shape, scale=12**0.5).double()
    losses, sums, scores = [], [], []
    backward, topk = torch.Tensor.backward, torch.topk
    torch.Tensor.backward = lambda loss: (losses.append(loss.detach()), backward(loss))
    torch.topk = lambda outputs, **named: (scores.append(outputs), topk(outputs, **named))[1]
    for _ in range(CLASSES // PER_TASK):
        learner.incremental_train(manager)
        for side in (network.Image_Adapter, network.Text_Adapter):
            sums.append(sum(torch.cat([layer.weight, layer.bias[:, None]], dim=1) for layer in side))
        learner._eval_cnn(learner.test_loader)
        learner.after_task()
    torch.Tensor.backward, torch.topk, torch.clamp = backward, topk, clamp
    described, cosines = draw(CLASSES, CLASSES, WIDTH, scale=2.0).double(), draw(TESTS, CLASSES, scale=1.0).double()
    rows.update({f"{a} with no {b}": described[i, j] for i, a in enumerate(names(CLASSES)) for j, b in enumerate(names(CLASSES))})
    ranked = inc_net.Engine.rerank(network, {a: {b: [f"No {b}"] for b in names(CLASSES)} for a in names(CLASSES)}, cosines,
                                   torch.nn.functional.normalize(tests), names(CLASSES), "cpu", 4)
    write(path, "https://github.com/LAMDA-CL/ICCV25-ENGINE",
          {"losses": torch.stack(losses), "layers": torch.stack(sums), "scores": torch.cat([part.flatten() for part in scores]), "ranked": 0.3 * ranked + 0.7 * cosines})


record(*sys.argv[1:])

"""Compares ran_pac, simple_cil and lada with PyTorch on random tensors: draws them, computes what the papers' formulas give, writes
both as a folder for replay_fixtures, and runs it. Needs torch and safetensors; exit status 77, "skipped", without them.

    python tests/replay/check_classes.py build/tests/replay_fixtures [--public FOLDER] [--keep FOLDER]

FOLDER may hold files of the public code, which are run unchanged on the same tensors and are what is compared with then: RanPAC.py
and inc_net.py (RanPAC/RanPAC), simplecil.py (LAMDA-PILOT, models/), lada.py (MaolinLuo/LADA, models/; needs scikit-learn). They need tqdm.
lada's loss, the mean of weighted cross-entropies, is as ports of the public code have it, whose own file of losses was not at hand.
"""
import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import types

try:
    import torch
    from safetensors.torch import save_file
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

F = torch.nn.functional
WIDTH, HIDDEN, CLASSES, PER_CLASS, TEST = 16, 48, [4, 3, 5], 30, 40
VECTORS, GAUSSIANS, STEPS, PAST_WEIGHT, MEMORY_WEIGHT, SHARPNESS = 3, 2, 20, 64.0, 2.0, 1.5
PEAK, DECAY = 0.01, 5e-4
RIDGES = [10.0**e for e in range(-8, 9)]


def draw_tasks(random):
    """Features of every task, in random order, of classes that overlap; labels are numbers among all classes."""
    tasks, first = [], 0
    for classes in CLASSES:
        centres = torch.randn(classes, WIDTH, generator=random)
        labels = torch.arange(classes).repeat_interleave(PER_CLASS)
        features = 3 + centres[labels] + 0.7 * torch.randn(len(labels), WIDTH, generator=random)
        order = torch.randperm(len(labels), generator=random)
        tasks.append((features[order], labels[order] + first))
        first += classes
    return tasks


# --- the public code ---


def load(folder, name):
    """A file of the public code, or None. What it imports and does not use here is not there."""
    path = os.path.join(folder or "", name + ".py")
    if folder is None or not os.path.exists(path):
        return None

    def one_hot(labels, classes):
        return F.one_hot(labels, classes).float()

    nothing = lambda *arguments, **others: None
    stubs = {"timm": {}, "utils": {}, "models": {}, "models.base": {"BaseLearner": object},
             "utils.toolkit": {"target2onehot": one_hot, "tensor2numpy": nothing, "accuracy": nothing},
             "utils.inc_net": {"IncrementalNet": nothing, "SimpleCosineIncrementalNet": nothing, "SimpleVitNet": nothing}}
    for stub, contents in stubs.items():
        sys.modules[stub] = types.ModuleType(stub)
        vars(sys.modules[stub]).update(contents)
    sys.path.insert(0, folder)
    specification = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def on_cpu():
    """The public code asks for a GPU by name."""
    torch.Tensor.cuda = lambda tensor, *arguments, **others: tensor
    to = torch.Tensor.to
    torch.Tensor.to = lambda tensor, *arguments, **others: tensor if "device" in others else to(tensor, *arguments, **others)


class Network:
    """What RanPAC's and PILOT's learners expect of theirs: features are their own images."""

    def __init__(self, head):
        self.fc = head

    def eval(self):
        return self

    def backbone(self, images):
        return images

    convnet = backbone


def public_ran_pac(code, heads, tasks, random, test, projects):
    learner = code.Learner.__new__(code.Learner)
    learner.args = {"use_RP": projects, "M": HIDDEN}
    learner.is_dil, learner.total_classnum = False, sum(CLASSES)
    learner.W_rand = random.T.contiguous()
    learner.Q, learner.G = torch.zeros(HIDDEN, sum(CLASSES)), torch.zeros(HIDDEN, HIDDEN)
    chosen, choose = [], code.Learner.optimise_ridge_parameter

    def optimise(features, targets):
        chosen.append(choose(learner, features, targets))
        return chosen[-1]

    learner.optimise_ridge_parameter = optimise
    results, classes, weight = [], 0, None
    for t, (features, labels) in enumerate(tasks):
        classes += CLASSES[t]
        head = heads.CosineLinear(WIDTH, classes)
        if projects:
            head.weight = torch.nn.Parameter(torch.zeros(classes, HIDDEN))
            head.use_RP, head.W_rand = True, learner.W_rand
        elif weight is not None:
            head.weight.data[: len(weight)] = weight
        learner._network = Network(head)
        learner.train_dataset = types.SimpleNamespace(labels=labels.numpy())
        learner.replace_fc([(None, features, labels)])
        weight = head.weight.data.clone()
        results.append((weight, head(test)["logits"].detach()))
    return results, chosen


def public_simple_cil(code, heads, tasks, test):
    learner = code.Learner.__new__(code.Learner)
    learner._device, head, classes, results = "cpu", None, 0, []
    for t, (features, labels) in enumerate(tasks):
        before, classes = head, classes + CLASSES[t]
        head = heads.CosineLinear(WIDTH, classes)
        if before is not None:
            head.weight.data[: before.weight.shape[0]] = before.weight.data
        learner._network = Network(head)
        learner.train_dataset = types.SimpleNamespace(labels=labels.numpy())
        learner.replace_fc([(None, features, labels)], learner._network, None)
        results.append(head(test)["logits"].detach())
    return results


# --- the formulas ---


def ran_pac(tasks, random, test):
    results, chosen = [], []
    products, gram = torch.zeros(HIDDEN, sum(CLASSES)).double(), torch.zeros(HIDDEN, HIDDEN).double()
    for t, (features, labels) in enumerate(tasks):
        phi = F.relu(features.double() @ random.double().T)
        targets = F.one_hot(labels, sum(CLASSES)).double()
        used = int(0.8 * len(phi))
        losses = []
        for ridge in RIDGES:
            solved = torch.linalg.solve(phi[:used].T @ phi[:used] + ridge * torch.eye(HIDDEN), phi[:used].T @ targets[:used])
            losses.append(((phi[used:] @ solved - targets[used:]) ** 2).mean())
        chosen.append(RIDGES[min(range(len(RIDGES)), key=losses.__getitem__)])
        products, gram = products + phi.T @ targets, gram + phi.T @ phi
        solved = torch.linalg.solve(gram + chosen[-1] * torch.eye(HIDDEN), products)[:, : sum(CLASSES[: t + 1])]
        results.append((solved.T, F.relu(test.double() @ random.double().T) @ solved))
    return results, chosen


def simple_cil(tasks, test):
    means, results = [], []
    for features, labels in tasks:
        means += [features[labels == c].mean(0) for c in sorted(set(labels.tolist()))]
        results.append(F.normalize(test, dim=1) @ F.normalize(torch.stack(means), dim=1).T)
    return results


def memory_scores(code, x, vectors, one_hot):
    if code is not None:
        memory = code.LADA(types.SimpleNamespace(proj=torch.zeros(1, WIDTH)), beta=SHARPNESS)
        return memory(x, vectors.T, one_hot)
    return torch.exp(-SHARPNESS * (1 - x @ vectors.T)) @ one_hot


def lada(code, random):
    """Trains the vectors of the last three of five classes: its loss, AdamW and OneCycleLR by PyTorch, in float64."""
    classes, old, batch = 5, 2, 7
    owners = torch.arange(classes).repeat_interleave(VECTORS)
    vectors = F.normalize(torch.randn(len(owners), WIDTH, generator=random), dim=1).double()
    texts = F.normalize(torch.randn(classes, WIDTH, generator=random), dim=1).double()
    one_hot, first = F.one_hot(owners, classes).double(), old * VECTORS
    shares = torch.rand(old, GAUSSIANS, generator=random).double()
    shares = (shares / shares.sum(1, keepdim=True)).flatten()
    weights = torch.cat([PAST_WEIGHT * shares, torch.ones(batch)]).expand(STEPS, -1).contiguous()
    labels = torch.cat([torch.arange(old).repeat_interleave(GAUSSIANS).expand(STEPS, -1),
                        torch.randint(old, classes, (STEPS, batch), generator=random)], dim=1)
    images = torch.randn(STEPS, labels.shape[1], WIDTH, generator=random).double()
    start, current = vectors.clone(), torch.nn.Parameter(vectors[first:].clone())
    optimizer = torch.optim.AdamW([current], lr=PEAK, weight_decay=DECAY)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=PEAK, total_steps=STEPS)
    losses, gradient = [], None
    for step in range(STEPS):
        x = F.normalize(images[step], dim=1)
        scores = 10 * x @ texts.T + MEMORY_WEIGHT * memory_scores(code, x, torch.cat([start[:first], current]), one_hot)
        loss = (F.cross_entropy(scores, labels[step], reduction="none") * weights[step]).mean()
        optimizer.zero_grad()
        loss.backward()
        gradient = current.grad.clone() if gradient is None else gradient
        optimizer.step()
        if step + 1 < STEPS:
            schedule.step()
        losses.append(loss.item())
    return {"lada.texts": 10 * texts, "lada.start": start, "lada.owners": owners.int(), "lada.x": images,
            "lada.labels": labels.int(), "lada.weights": weights, "lada.gradient": gradient,
            "lada.losses": torch.tensor(losses, dtype=torch.float64), "lada.end": torch.cat([start[:first], current.detach()])}


def by_first(means, *others):
    order = torch.argsort(means[:, 0])
    return [values[order].contiguous() for values in (means, *others)]


def lloyd(rows, means):
    while True:
        nearest = torch.cdist(rows, means).argmin(1)
        moved = torch.stack([rows[nearest == c].mean(0) for c in range(len(means))])
        if torch.equal(moved, means):
            return means, nearest
        means = moved


def maximise(rows, shares):
    members = shares.sum(0)
    means = shares.T @ rows / members[:, None]
    variances = (shares * torch.cdist(rows, means) ** 2).sum(0) / (members * WIDTH) + 1e-6
    return means, variances, members / len(rows)


def gaussians_of(rows, nearest):
    found, before = maximise(rows, F.one_hot(nearest).double()), None
    while True:
        means, variances, weights = found
        logs = weights.log() - (WIDTH * (2 * torch.pi * variances).log() + torch.cdist(rows, means) ** 2 / variances) / 2
        found, now = maximise(rows, logs.softmax(1)), logs.logsumexp(1).mean()
        if before is not None and abs(now - before) < 1e-3:
            return found
        before = now


def clusters(code, random):
    """Clusters that k-means finds from any start, but the Gaussians' are near enough that rows are shared."""
    labels = torch.arange(3).repeat_interleave(torch.tensor([20, 12, 28]))
    line = torch.tensor([[-1.0], [0.0], [1.0]]).repeat(1, WIDTH)
    rows = (line[labels] + 0.55 * torch.randn(60, WIDTH, generator=random)).double()
    units = F.normalize((torch.eye(WIDTH)[labels] + 0.15 * torch.randn(60, WIDTH, generator=random)).double(), dim=1)
    start = [torch.stack([points[labels == c].mean(0) for c in range(3)]) for points in (units, rows)]
    centres, found = lloyd(units, start[0])[0], gaussians_of(rows, lloyd(rows, start[1])[1])
    if code is not None:
        encoder, text = torch.nn.Identity(), torch.nn.Identity()
        encoder.proj, text.out_dim = torch.zeros(1, WIDTH), WIDTH
        memory, prototypes = code.LADA(encoder), code.DPT(encoder, text)
        memory.build_lada([(units, torch.zeros(60).long())], "cpu", k=3)
        prototypes.update_image_prototypes([(rows, torch.zeros(60).long())], 3, "cpu")
        centres = memory.curr_lada_features.detach().T
        found = (prototypes.image_prototypes, prototypes.image_prototypes_covs, prototypes.image_prototypes_weights)
    means, variances, weights = by_first(*found)
    return {"clusters.rows": rows, "clusters.units": units, "clusters.centres": by_first(centres)[0],
            "clusters.means": means.double(), "clusters.variances": variances.double(), "clusters.weights": weights.double()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("replay")
    parser.add_argument("--public")
    parser.add_argument("--keep")
    arguments = parser.parse_args()
    on_cpu()
    generator = torch.Generator().manual_seed(7)
    tasks = draw_tasks(generator)
    directions = torch.randn(HIDDEN, WIDTH, generator=generator)
    test = 3 + torch.randn(TEST, WIDTH, generator=generator)
    heads, pilot, memory = load(arguments.public, "inc_net"), load(arguments.public, "simplecil"), load(arguments.public, "lada")
    public = load(arguments.public, "RanPAC") if heads is not None else None
    regressions, ridges = (public_ran_pac(public, heads, tasks, directions, test, True) if public is not None
                           else ran_pac(tasks, directions, test))
    cosines = public_simple_cil(pilot, heads, tasks, test) if pilot is not None and heads is not None else simple_cil(tasks, test)
    tensors = {"random": directions, "test": test, **lada(memory, generator), **clusters(memory, generator)}
    for t, (features, labels) in enumerate(tasks):
        tensors |= {f"train.{t}": features, f"labels.{t}": labels.int(), f"weights.{t}": regressions[t][0].double(),
                    f"scores.{t}": regressions[t][1].double(), f"cosines.{t}": cosines[t].double()}
    print("compared with:", ", ".join(f"{name} {'as published' if code else 'by its formulas'}" for name, code in
                                      (("RanPAC", public), ("SimpleCIL", pilot), ("LADA", memory))))
    folder = arguments.keep or tempfile.mkdtemp()
    os.makedirs(folder, exist_ok=True)
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, os.path.join(folder, "classes.safetensors"))
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump({"classes": CLASSES, "ridges": [float(ridge) for ridge in ridges], "memory_weight": MEMORY_WEIGHT,
                   "sharpness": SHARPNESS, "peak": PEAK, "decay": DECAY,
                   "tolerances": {"weights": 1e-3 if public else 1e-9, "scores": 1e-4 if public else 1e-9, "cosines": 1e-6,
                                  "lada": 1e-6 if memory else 1e-10, "clusters": 1e-9}}, file, indent=1)
    return subprocess.run([arguments.replay, folder]).returncode


if __name__ == "__main__":
    sys.exit(main())

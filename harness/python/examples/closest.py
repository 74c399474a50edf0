"""A merge policy: the two experts whose counts are closest replace the least used of the others that are not frozen."""

import itertools

import mtil


def closest(view):
    for block, (counts, frozen) in enumerate(zip(view.counts, view.frozen)):
        pair = min(itertools.combinations(range(len(counts)), 2), key=lambda p: abs(counts[p[0]] - counts[p[1]]))
        free = [expert for expert in range(len(counts)) if not frozen[expert] and expert not in pair]
        if free:
            yield {"block": block, "sources": pair, "target": min(free, key=lambda expert: counts[expert])}


mtil.policy(closest)

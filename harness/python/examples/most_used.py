"""The merge policy most_used of mtil: the two most used experts replace the least used one that is not frozen."""

import mtil


def most_used(view):
    for block, (counts, frozen) in enumerate(zip(view.counts, view.frozen)):
        sources = sorted(range(len(counts)), key=lambda expert: -counts[expert])[:2]
        free = [expert for expert in range(len(counts)) if not frozen[expert]]
        target = min(free, key=lambda expert: counts[expert], default=None)
        if target is None or target in sources:
            yield {"block": block, "skip": "no free expert" if target is None else "the target is a source"}
        else:
            yield {"block": block, "sources": sources, "target": target}


mtil.policy(most_used)

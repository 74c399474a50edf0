"""The merge policy similar of mtil: the two experts most alike replace the least used one that is not frozen."""

import itertools

import mtil


def similar(view):
    for block, (counts, frozen) in enumerate(zip(view.counts, view.frozen)):
        cosine = view.similarity[block]
        sources = max(itertools.combinations(range(len(counts)), 2), key=lambda pair: cosine[pair[0]][pair[1]])
        free = [expert for expert in range(len(counts)) if not frozen[expert]]
        target = min(free, key=lambda expert: counts[expert], default=None)
        if target is None or target in sources:
            yield {"block": block, "skip": "no free expert" if target is None else "the target is a source"}
        else:
            yield {"block": block, "sources": sources, "target": target}


mtil.policy(similar, needs=["similarity"])

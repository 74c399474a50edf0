"""held_policy.py POLICY.py TASK ITERATION: the policy of an example, which waits at the gate before that merge.

Its state counts the merges, so that one that is lost, or told twice, by a stop ends the run.
"""

import runpy
import sys

import gate

import mtil

TASK, ITERATION = map(int, sys.argv[2:4])
serve = mtil.policy


def policy(function, needs=()):
    def held(view):
        merges = int(view.state or 0)
        expected = (view.task * 3 + view.iteration // 4 - 1) * len(view.towers) + (view.tower == "text")
        assert merges == expected, f"expected {expected} merges before this one, found {merges}"
        view.state = str(merges + 1)
        if (view.task, view.iteration, view.tower) == (TASK, ITERATION, "image"):
            gate.wait()
        return function(view)

    serve(held, needs)


mtil.policy = policy
runpy.run_path(sys.argv[1])

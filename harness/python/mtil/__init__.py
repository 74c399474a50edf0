"""The bridge from Python to the program mtil: what it reads, methods and merge policies in Python, results in and out.

    import mtil
    for task in mtil.tasks("mini", data__order="mnist,dtd"):    # what a run reads
        image, label = task.train[0]
    mtil.serve(MyMethod())                                      # method.name=external method.command="python3 FILE"
    mtil.policy(my_function)                                    # merge.policy=external merge.command="python3 FILE"
    frame = mtil.read("results.db").query("leaderboard")

Nothing is computed here. docs/external.md of the program describes the protocol.
"""

from mtil.data import Items, Task, tasks
from mtil.program import Error, program, run
from mtil.results import Results, read, record
from mtil.server import Method, View, policy, serve

__all__ = ["Error", "Items", "Method", "Results", "Task", "View", "policy", "program", "read", "record", "run", "serve",
           "tasks"]

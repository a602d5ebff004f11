"""The parts of the reproduction, in the order in which they run.

A part is a module with two functions: `tasks(scale)`, what to run, and `run(task, records)`, which
runs one of them and returns its result as plain data. It may read the records of the parts before.
"""

from types import ModuleType

from experiments.parts import (
    assumption,
    compare,
    consistency,
    frontier,
    parsimony,
    stationarity,
    tune,
)

PARTS: dict[str, ModuleType] = {
    "tune": tune,
    "compare": compare,
    "frontier": frontier,
    "consistency": consistency,
    "stationarity": stationarity,
    "parsimony": parsimony,
    "assumption": assumption,
}

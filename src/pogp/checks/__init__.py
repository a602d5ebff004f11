"""Checks that every model of the package passes, and that you can run on your own models.

Together they define the protocol of models. The name of a check says what it verifies:

>>> import pogp
>>> from pogp.checks import check_model, checks_for
>>> def make():
...     return pogp.SlidingWindow(pogp.RBF(), noise=0.1, max_size=20)
>>> check_model(make)
>>> checks_for(make)[0].__name__
'an_empty_model_holds_nothing'

For pytest, `pytest.mark.parametrize("check", checks_for(make))` and then `check(make)`.
"""

from pogp.checks import predictions, learning, twins, harmless, hard  # noqa: F401, I001, in order
from pogp.checks._kit import CHECKS, Check, CheckFailure, Make

__all__ = ["Check", "CheckFailure", "Make", "check_model", "checks_for"]


def check_model(make: Make) -> None:
    """Run every check that applies; the first to fail raises `CheckFailure`.

    `make` takes no arguments and gives a fresh model each time, always the same. The stream has two
    inputs, or as many as the kernel has length-scales.
    """
    for check in checks_for(make):
        check(make)


def checks_for(make: Make) -> list[Check]:
    """Return the checks that apply: some are for models that learn, have a cap, or keep samples."""
    if not callable(make):
        raise TypeError(f"make must be a function that makes a model, got a model: {make!r:.100}")
    model = make()
    return [check for check, conditions in CHECKS if all(holds(model) for holds in conditions)]

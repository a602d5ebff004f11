"""A copy, a pickle and a file continue exactly as the model does."""

import pickle
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pogp import models
from pogp.checks._kit import (
    HALF,
    Make,
    check,
    require,
    require_equal,
    require_same,
    require_same_state,
    stream,
    train,
    trained,
)
from pogp.files import persistence


def can_be_loaded(model: Any) -> bool:
    """Say whether `pogp.load` can load the model: only models of this package."""
    return getattr(models, type(model).__name__, None) is type(model)


@check()
def a_copy_goes_on_bit_for_bit(make: Make) -> None:
    """Check the empty model, and one in the middle of the stream."""
    _require_goes_on(make, lambda model: model.copy())


@check()
def a_pickle_goes_on_bit_for_bit(make: Make) -> None:
    """Check the empty model, and one in the middle of the stream."""
    _require_goes_on(make, lambda model: pickle.loads(pickle.dumps(model)))


@check(can_be_loaded)
def a_file_goes_on_bit_for_bit(make: Make) -> None:
    """Check the empty model, and one in the middle of the stream."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model"

        def saved_and_loaded(model: Any) -> Any:
            model.save(path)
            return persistence.load(path)

        _require_goes_on(make, saved_and_loaded)


@check()
def a_copy_is_independent(make: Make) -> None:
    """Check that neither learns from the samples of the other."""
    X, y = stream(make())
    model = trained(make, HALF)
    twin, before = model.copy(), model.state()
    train(twin, X[HALF:], y[HALF:])
    require_same_state("a model whose copy learned", model, before)
    after = twin.state()
    train(model, X[HALF:] + 1.0, y[HALF:])
    require_same_state("a copy whose model learned", twin, after)


def _require_goes_on(make: Make, twin_of: Callable[[Any], Any]) -> None:
    X, y = stream(make())
    for model, place in ((make(), "when empty"), (trained(make, HALF), "half way")):
        twin = twin_of(model)
        require(type(twin) is type(model), f"a {type(model).__name__}", type(twin).__name__)
        require_equal("seen", twin.seen, model.seen)
        require_same(f"a twin {place}", twin, model)
        records = train(model, X[HALF:], y[HALF:])
        require_equal(f"the trace of a twin {place}", train(twin, X[HALF:], y[HALF:]), records)
        require_same(f"a twin {place}, after more samples", twin, model)

"""How a model learns: sample by sample, in the order of the stream, within its memory."""

import numpy as np

from pogp.checks._kit import (
    HALF,
    SAMPLES,
    Make,
    cap,
    check,
    fits,
    is_capped,
    is_sequential,
    is_steady,
    learns,
    queries,
    require,
    require_close,
    require_equal,
    require_refusal,
    require_same,
    require_same_state,
    require_sound,
    retains_samples,
    stream,
    trained,
)
from pogp.trace import FIELDS, concatenate


@check()
def size_and_seen_count_what_was_learned(make: Make) -> None:
    """Check also that the dictionary and the indices have one entry per point."""
    model = trained(make)
    require_equal("seen", model.seen, SAMPLES)
    require(1 <= model.size <= SAMPLES, f"a size from 1 to {SAMPLES}", model.size)
    shape = (model.size, stream(model)[0].shape[1])
    require_equal("the shape of the dictionary", model.dictionary.shape, shape)
    require_equal("the shape of indices", model.indices.shape, (model.size,))
    require_equal("the type of the dictionary", model.dictionary.dtype, np.float64)
    require_equal("the type of indices", model.indices.dtype, np.int64)
    least = model.dictionary.nbytes
    require(model.nbytes >= least, f"nbytes of at least the dictionary's {least}", model.nbytes)


@check()
def indices_say_where_in_the_stream_each_point_was(make: Make) -> None:
    """Check the order of arrival; -1 is for a point that is not a sample."""
    X, y = stream(make())
    for count in (1, HALF, SAMPLES):
        model = trained(make, count)
        is_sample = model.indices != -1
        places = model.indices[is_sample]
        require((np.diff(places) > 0).all(), "indices in order of arrival", places)
        require(((places >= 0) & (places < count)).all(), f"indices below {count}", places)
        require_close("the points at indices", model.dictionary[is_sample], X[places])
        if retains_samples(model):
            require_equal("targets", model.targets, y[model.indices])


@check(is_sequential)
def a_batch_is_its_samples_one_by_one(make: Make) -> None:
    """Check the retained points, and the trace and predictions to rounding."""
    model = make()
    X, y = stream(model)
    traces = [model.learn(x, target) for x, target in zip(X, y, strict=True)]
    together = make()
    trace = together.learn(X, y)
    require_equal("indices", model.indices, together.indices)
    for name in FIELDS:
        got = getattr(concatenate(traces), name)
        require_close(f"the trace's {name}", got.astype(float), getattr(trace, name).astype(float))
    X = queries(model)
    require_close("predictions", model.predict(X), together.predict(X))


@check(is_sequential)
def a_batch_is_its_parts(make: Make) -> None:
    """Check parts of different sizes."""
    model = make()
    X, y = stream(model)
    for rows in np.split(np.arange(SAMPLES), (1, 1, 4, 80, 81)):
        model.learn(X[rows], y[rows])
    together = trained(make)
    require_equal("seen", model.seen, SAMPLES)
    require_equal("indices", model.indices, together.indices)
    X = queries(model)
    require_close("predictions", model.predict(X), together.predict(X))


@check(learns)
def an_empty_batch_changes_nothing(make: Make) -> None:
    """Check the first batch and a later one; the trace is empty."""
    X, y = stream(make())
    for model in (make(), trained(make)):
        before = model.state()
        require_equal("the length of the trace", len(model.learn(X[:0], y[:0])), 0)
        require_same_state("after no samples", model, before)


@check(learns)
def one_sample_may_come_in_any_shape(make: Make) -> None:
    """Check (p,) and a number, lists, and a batch of one."""
    X, y = stream(make())
    expected = trained(make, 1)
    for x, target in ((X[0], y[0]), (X[0].tolist(), float(y[0])), (X[0], y[:1])):
        model = make()
        require_equal("the length of the trace", len(model.learn(x, target)), 1)
        require_same(f"after X of {x!r} and y of {target!r}", model, expected)


@check(learns)
def the_trace_has_an_entry_for_each_sample(make: Make) -> None:
    """Check that sizes and removals add up, and that distances are from 0 to 1."""
    model = make()
    X, y = stream(model)
    for rows in np.split(np.arange(SAMPLES), (1, HALF)):
        before, trace = model.size, model.learn(X[rows], y[rows])
        require_equal("the length of the trace", len(trace), len(rows))
        for name in FIELDS:
            values = getattr(trace, name)
            require_equal(f"the shape of {name}", values.shape, (len(rows),))
            kinds = {"size": np.int64, "removed": np.int64, "tuning": np.bool_}
            require_equal(f"the type of {name}", values.dtype, kinds.get(name, np.float64))
            require(np.isfinite(values).all(), f"finite numbers for {name}", values)
        require_equal("the last size", trace.size[-1], model.size)
        sizes = np.append(before, trace.size)
        begun = sizes[:-1] > 0  # a model that tunes itself first gets its first points all at once
        require_equal("removed", trace.removed[begun], 1 - np.diff(sizes)[begun])
        for values in (trace.novelty, trace.change):
            require(((values >= 0) & (values <= 1)).all(), "distances from 0 to 1", values)


@check(learns)
def the_trace_has_what_was_predicted_before_learning(make: Make) -> None:
    """Check that its means and variances are those of `predict` before each sample."""
    model = make()
    X, y = stream(model)
    predicted, traced = [], []
    for x, target in zip(X[:HALF], y[:HALF], strict=True):
        predicted.append(model.predict(x))
        trace = model.learn(x, target)
        traced.append((trace.mean[0], trace.variance[0]))
    require_close("mean and variance in the trace", traced, predicted)


@check(is_capped)
def the_cap_is_kept_at_all_times(make: Make) -> None:
    """Check the size after every sample, not only at the end."""
    model = make()
    X, y = stream(model)
    most = cap(model)
    sizes = model.learn(X, y).size if learns(model) else np.array([model.fit(X, y).size])
    require(sizes.max() <= most, f"sizes of at most {most}", sizes.max())


@check(is_capped, learns, is_steady)
def memory_does_not_grow_at_the_cap(make: Make) -> None:
    """Check `nbytes`, which is at least the size of what `state` returns."""
    model = make()
    X, y = stream(model)
    full = 0
    for rows in 3 * np.split(np.arange(SAMPLES), 8):
        model.learn(X[rows], y[rows])
        arrays = [value for value in model.state().values() if isinstance(value, np.ndarray)]
        held = sum(array.nbytes for array in arrays)
        require(model.nbytes >= held, f"nbytes of at least {held}", model.nbytes)
        if model.size == cap(model):
            full = full or model.nbytes
            after = f"after {model.seen} samples"
            require(model.nbytes <= full, f"nbytes of at most {full} {after}", model.nbytes)


@check(retains_samples)
def a_sample_taken_back_is_gone(make: Make) -> None:
    """Check that the other points stay, and that `seen` still counts it."""
    model = trained(make)
    for place in (0, 1, -1)[: model.size - 1]:
        before = model.indices
        model.remove(int(before[place]))
        others = np.delete(before, place)
        require_equal(f"indices without {before[place]}", model.indices, others)
        require_equal("the size", model.size, len(others))
        require_equal("seen", model.seen, SAMPLES)
        require_sound(model, f"without {before[place]}")


@check(retains_samples)
def only_retained_samples_can_be_taken_back(make: Make) -> None:
    """Check that anything else is refused and changes nothing."""
    require_refusal("remove(0) from nothing", make().remove, 0)
    model = trained(make)
    before = model.state()
    missing = np.setdiff1d(np.arange(SAMPLES + 1), model.indices)
    for index in (int(missing[0]), SAMPLES, -1, 0.5, None):
        require_refusal(f"remove({index!r})", model.remove, index)
    require_same_state("after refusals", model, before)


@check(fits)
def fitting_again_starts_afresh(make: Make) -> None:
    """Check that nothing of an earlier fit is left, and that `fit` returns the model."""
    model = trained(make, HALF)
    X, y = stream(model)
    require(model.fit(X, y) is model, "the model itself from fit", "another object")
    require_same("after fitting again", model, trained(make))


@check(fits)
def fitting_takes_at_least_one_sample(make: Make) -> None:
    """Check that an empty batch is refused and changes nothing."""
    model = trained(make)
    before = model.state()
    X, y = stream(model)
    require_refusal("no samples", model.fit, X[:0], y[:0])
    require_same_state("after no samples", model, before)

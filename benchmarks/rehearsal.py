"""What a rehearsal gains on the paper's sets: test SMSE and NLPD before and after.

`python -m benchmarks.rehearsal` tunes on the first slice of each of seven random orders and of the
authors' own, streams the rest once at the paper's model order, and tests the model as it is and
`rehearsed()`. It needs the paper's data (see `pogp.datasets.load`) and takes a minute.

`python -m benchmarks.rehearsal parts` says where the error comes from, on five parts of kin40k.
"""

import sys
from collections.abc import Callable

import numpy as np

import pogp
from pogp.arrays import Array
from pogp.datasets import Dataset

SETS = {"kin40": (300, 392), "abalone": (150, 50), "boston": (50, 83)}
"""The length of the slice, and the model order."""
ORDERS = 7
PARTS = ((0, 300), (300, 4000), (4000, 8000))
"""Of each 8,000 rows: to tune by, to learn, to test."""
COLUMNS = ("absorbing", "rehearsed", "dense GP")


def scores(data: Dataset, slice_: int, size: int, order: int | None) -> Array:
    """Return SMSE and NLPD of the model, of the rehearsed one, and of the dense GP."""
    X, y = data.x_train, data.y_train
    if order is not None:
        shuffled = np.random.default_rng(order).permutation(len(y))
        X, y = X[shuffled], y[shuffled]
    mean = y[:slice_].mean()
    tuned = pogp.tune(X[:slice_], y[:slice_], mean=mean, seed=order or 0)
    prior = (tuned.kernel, tuned.noise)
    model = pogp.AbsorbingPOG(*prior, None, max_size=size, mean=mean)
    dense = pogp.DenseGP(*prior, mean=mean)
    for one in (model, dense):
        one.learn(X[slice_:], y[slice_:])
    predicts: list[Callable[[Array], tuple[Array, Array]]]
    predicts = [model.predict, model.rehearsed().predict, dense.predict]
    rows = []
    for predict in predicts:
        found, variance = predict(data.x_test)
        error = pogp.metrics.smse(data.y_test, found, y.var())
        rows.append([error, pogp.metrics.nlpd(data.y_test, found, variance)])
    return np.array(rows)


def table() -> None:
    """Print means and standard errors of the orders, and the authors' order by itself."""
    heading = "".join(f"{name:>18}" for name in COLUMNS)
    print(f"\nRehearsal, {ORDERS} random orders (± a standard error) and the authors':\n")
    print(f"{'':>24}{heading}")
    for name, (slice_, size) in SETS.items():
        data = pogp.datasets.load(name)
        runs = np.array([scores(data, slice_, size, order) for order in range(ORDERS)])
        own = scores(data, slice_, size, None)
        errors = runs.std(axis=0, ddof=1) / np.sqrt(ORDERS)
        for i, score in enumerate(("SMSE", "NLPD")):
            label = f"{name}, M = {size}" if i == 0 else ""
            pairs = zip(runs.mean(axis=0)[:, i], errors[:, i], strict=True)
            print(
                f"{label:<18}{score:<6}" + "".join(f"{f'{m:.4f} ± {e:.4f}':>18}" for m, e in pairs)
            )
            print(
                f"{'':<18}{'own':<6}" + "".join(f"{value:>18.4f}" for value in own[:, i]),
                flush=True,
            )


def parts() -> None:
    """Print test SMSE on five parts of kin40k: 300 samples to tune by, 3,700 to learn, M = 392."""
    data = pogp.datasets.load("kin40k")
    X = np.vstack([data.x_train, data.x_test])
    y = np.append(data.y_train, data.y_test)
    columns = ("absorbing", "1,000 again", "all again", "dense GP")
    for prior in (False, True):
        runs = []
        for start in range(0, 40_000, 8000):
            tuning, rows, test = (slice(start + a, start + b) for a, b in PARTS)
            tuned = pogp.tune(X[tuning], y[tuning], prior=prior)
            model, whole = (
                pogp.AbsorbingPOG(tuned.kernel, tuned.noise, None, max_size=392, reservoir=count)
                for count in (1000, 3700)
            )
            dense = pogp.DenseGP(tuned.kernel, tuned.noise)
            for one in (model, whole, dense):
                one.learn(X[rows], y[rows])
            models = (model, model.rehearsed(), whole.rehearsed(), dense)
            means = [one.predict(X[test])[0] for one in models]
            runs.append([pogp.metrics.smse(y[test], mean, y[test].var()) for mean in means])
        scores = zip(columns, np.mean(runs, axis=0), strict=True)
        tuned_by = "tuned with a prior" if prior else "tuned"
        print(f"{tuned_by}: " + ", ".join(f"{name} {score:.4f}" for name, score in scores))


if __name__ == "__main__":
    parts() if "parts" in sys.argv[1:] else table()

"""What the prior of `tune` gains on tables: test SMSE and NLPD with and without it.

`python -m benchmarks.priors` takes 300 random rows of each table to tune by, 1,500 to learn and
1,500 to test (of Boston 100, 250 and the rest), in units of the 300 rows, with two seeds. The
tables are simulated, the published ones, and the recordings in the folder `streams` of `POGP_DATA`.
It takes about two minutes.
"""

import argparse
import sys

import numpy as np

import pogp
from benchmarks.streams import recorded, recordings
from pogp.arrays import Array

TUNED, LEARNED, TESTED = 300, 1500, 1500
ROWS = TUNED + LEARNED + TESTED
SEEDS = 2
DRAWN = {
    "GP, 8 inputs": (8, 0, 0.01),
    "GP, 4 of 12 inputs": (4, 8, 0.01),
    "GP, noise .1": (8, 0, 0.1),
}
"""Draws from a GP: inputs that matter, inputs that do not, and the noise."""


def drawn(seed: int, inputs: int, others: int, noise: float) -> tuple[Array, Array]:
    """Return a draw from a GP whose length-scales are 2 to 5 or so."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((ROWS, inputs + others))
    kernel = pogp.RBF(np.exp(rng.normal(np.log(3.0), 0.5, inputs)))
    covariance = kernel(X[:, :inputs]) + noise * np.eye(ROWS)
    return X, np.linalg.cholesky(covariance) @ rng.standard_normal(ROWS)


def table(name: str, seed: int) -> tuple[Array, Array]:
    """Return the rows of a table, at most as many as are needed, at random."""
    if name in DRAWN:
        return drawn(seed, *DRAWN[name])
    if name.startswith("arm"):
        data = pogp.datasets.arm(ROWS, seed, n_test=1, noise=0.0 if "no noise" in name else 0.01)
        return data.x_train, data.y_train
    if name in recordings():
        stream = recorded(recordings()[name], sys.maxsize)
        X, y = stream.X, stream.y
    else:
        data = pogp.datasets.load(name)
        X = np.vstack([data.x_train, data.x_test])
        y = np.append(data.y_train, data.y_test)
    rows = np.random.default_rng(seed).permutation(len(y))[:ROWS]
    return X[rows], y[rows]


def scores(name: str, seed: int) -> Array:
    """Return SMSE and NLPD, (likelihood or posterior, dense or absorbing, 2)."""
    X, y = table(name, seed)
    tuned, learned, size = (TUNED, LEARNED, 150) if len(y) == ROWS else (100, 250, 50)
    scale = X[:tuned].std(axis=0)
    X = (X - X[:tuned].mean(axis=0)) / np.where(scale > 0, scale, 1.0)
    y = (y - y[:tuned].mean()) / y[:tuned].std()
    rows, test = slice(tuned, tuned + learned), slice(tuned + learned, None)
    found = []
    for prior in (False, True):
        best = pogp.tune(X[:tuned], y[:tuned], prior=prior)
        dense = pogp.DenseGP(best.kernel, best.noise)
        absorbing = pogp.AbsorbingPOG(best.kernel, best.noise, None, max_size=size)
        for model in (dense, absorbing):
            model.learn(X[rows], y[rows])
            mean, variance = model.predict(X[test])
            error = pogp.metrics.smse(y[test], mean, y[test].var())
            found.append((error, pogp.metrics.nlpd(y[test], mean, variance)))
    return np.reshape(found, (2, 2, 2))


def report(names: list[str]) -> None:
    """Print a line per table: means over the seeds, and what the prior changes."""
    print("\nHyperparameters of 300 samples, by the likelihood and with the prior:\n")
    print(f"{'':>20}{'dense GP: SMSE':>22}{'NLPD':>20}{'absorbing: SMSE':>24}{'NLPD':>20}")
    ratios = []
    for name in names:
        runs = np.array([scores(name, seed) for seed in range(SEEDS)])
        ratios.append(np.log(runs[:, 1, :, 0] / runs[:, 0, :, 0]).mean(axis=0))
        plain, prior = runs.mean(axis=0)
        cells = [f"{plain[i, j]:.4f} → {prior[i, j]:.4f}" for i in range(2) for j in range(2)]
        print(f"{name:>20}" + "".join(f"{cell:>22}" for cell in cells), flush=True)
    dense, absorbing = np.exp(np.mean(ratios, axis=0))
    print(f"\nSMSE with the prior ÷ without, geometric mean: {dense:.3f} and {absorbing:.3f}")


def main(arguments: list[str]) -> None:
    """Run the tables that are named, or all."""
    long = [name for name in recordings() if name != "co2"]
    names = ["arm", "arm, no noise", *DRAWN, "abalone", "boston", *long]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.priors", description=__doc__)
    parser.add_argument("names", nargs="*", help="tables to run (default: all)")
    report(parser.parse_args(arguments).names or names)


if __name__ == "__main__":
    main(sys.argv[1:])

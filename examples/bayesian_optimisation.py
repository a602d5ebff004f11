"""Bayesian optimisation with bounded memory: thousands of noisy trials at constant cost each.

A Gaussian process that keeps every trial becomes slower with each of them, which limits it to some
hundreds. Here it keeps a fixed number of points, so the thousandth trial costs as much as the
hundredth. The first trials are random and also give the hyperparameters. Each further trial
maximises the expected improvement over the best predicted value: the best of many candidates, which
are random or near the best point so far, is improved by the gradient of the prediction. Because
trials are noisy, the result is the point with the highest predicted value, not the best trial.

The function is Branin's with its sign changed. It ranges from −308 to −0.4 at its three maxima. The
regret is the difference between the maximum and the true value at the result. Random search returns
its best trial.

    python examples/bayesian_optimisation.py --figure regret.png
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # threads slow down small products

import argparse
from dataclasses import dataclass
from pathlib import Path
from time import process_time

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import ndtr

import pogp

Array = NDArray[np.float64]
LOW, HIGH = np.array([-5.0, 0.0]), np.array([10.0, 15.0])
OPTIMUM = -0.397887
RANDOM, CANDIDATES = 50, 500
"""Trials before there is a model, and places that are considered for each trial after them."""
CLIMB = 5
"""Steps by the gradient from the best of them."""


def branin(x: Array) -> float:
    """Return the function at a place, upside down: it is to be made large."""
    valley = x[1] - 5.1 / (4 * np.pi**2) * x[0] ** 2 + 5 / np.pi * x[0] - 6
    return float(-(valley**2) - 10 * (1 - 1 / (8 * np.pi)) * np.cos(x[0]) - 10)


@dataclass(frozen=True)
class Search:
    """By trial: the regret of the answer so far, and seconds spent on choosing and learning."""

    regret: Array
    seconds: Array


def optimise(trials: int, points: int, noise: float, seed: int) -> Search:
    """Return how a search with a model went."""
    rng = np.random.default_rng(seed)
    model = pogp.SelfTuning("absorbing", warmup=RANDOM, budget=None, max_size=points, seed=seed)
    answer = rng.uniform(LOW, HIGH)
    search = Search(np.empty(trials), np.empty(trials))
    for trial in range(trials):
        started = process_time()
        x = rng.uniform(LOW, HIGH) if model.warming_up else propose(model, answer, rng)
        search.seconds[trial] = process_time() - started
        y = branin(x) + noise * rng.normal()
        started = process_time()
        model.learn(x, y)
        if not model.warming_up:
            answer = most_promising(model, answer, x)
        search.seconds[trial] += process_time() - started
        search.regret[trial] = OPTIMUM - branin(answer)
    return search


def propose(model: pogp.SelfTuning, answer: Array, rng: np.random.Generator) -> Array:
    """Return the candidate with the largest expected improvement over the answer."""
    widths = 10.0 ** rng.uniform(-2.5, -0.5, (CANDIDATES // 2, 1))
    steps = widths * (HIGH - LOW) * rng.normal(size=(CANDIDATES // 2, 2))
    anywhere = rng.uniform(LOW, HIGH, (CANDIDATES - len(steps), 2))
    X = np.vstack([np.clip(answer + steps, LOW, HIGH), anywhere])
    best, _ = model.predict(answer, latent=True)
    start = X[np.argmax(improvement(*model.predict(X, latent=True), best)[0])]

    def negative(x: Array) -> tuple[float, Array]:
        mean, variance = model.predict(x, latent=True)
        value, by_mean, by_deviation = improvement(mean, variance, best)
        of_mean, of_variance = model.gradient(x)
        deviation = np.sqrt(variance) + 1e-12
        return -float(value), -(by_mean * of_mean + by_deviation * of_variance / (2 * deviation))

    bounds = list(zip(LOW, HIGH, strict=True))
    found = minimize(negative, start, jac=True, bounds=bounds, options={"maxiter": CLIMB})
    climbed: Array = np.clip(found.x, LOW, HIGH)
    return climbed


def improvement(mean: Array, variance: Array, best: float) -> tuple[Array, Array, Array]:
    """Return the expected improvement, and its derivatives by the mean and by the deviation."""
    deviation = np.sqrt(variance) + 1e-12
    z = (mean - best) / deviation
    density = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
    return deviation * (z * ndtr(z) + density), ndtr(z), density


def most_promising(model: pogp.SelfTuning, answer: Array, x: Array) -> Array:
    """Return where the model predicts most: at the answer so far, the last trial, or a point."""
    places = np.vstack([answer, x, model.dictionary])
    mean, _ = model.predict(places, latent=True)
    best: Array = places[np.argmax(mean)]
    return best


def at_random(trials: int, noise: float, seed: int) -> Array:
    """Return the regret of random search after each trial."""
    rng = np.random.default_rng(seed)
    regret, luckiest = np.empty(trials), (-np.inf, 0.0)
    for trial in range(trials):
        value = branin(rng.uniform(LOW, HIGH))
        luckiest = max(luckiest, (value + noise * rng.normal(), value))
        regret[trial] = OPTIMUM - luckiest[1]
    return regret


def main() -> None:
    """Search by the model and at random, some times, and say how far each came on average."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=5, help="of the search, with other seeds")
    parser.add_argument("--points", type=int, default=60, help="that the model keeps at most")
    parser.add_argument("--noise", type=float, default=5.0, help="standard deviation of a trial")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--figure", type=Path, help="where to write a picture")
    options = parser.parse_args()
    if options.trials <= RANDOM:
        parser.error(f"--trials must be above {RANDOM}, got {options.trials}")
    seeds = range(options.seed, options.seed + options.repeats)
    searches = [optimise(options.trials, options.points, options.noise, seed) for seed in seeds]
    model = np.mean([search.regret for search in searches], axis=0)
    random = np.mean([at_random(options.trials, options.noise, seed) for seed in seeds], axis=0)
    print(f"{options.points} points, noise of deviation {options.noise:g}; mean regret of answers:")
    print("  trials   model  random")
    for count in sorted({RANDOM, *np.geomspace(RANDOM, options.trials, 6).astype(int).tolist()}):
        print(f"{count:8} {model[count - 1]:7.3f} {random[count - 1]:7.3f}")
    times = np.median([search.seconds[RANDOM + 1 :] for search in searches], axis=0)
    early, late = (1e3 * np.median(half) for half in np.array_split(times, 2))
    print(f"milliseconds per trial: {early:.1f} in the first half, {late:.1f} in the second")
    if options.figure:
        draw(options.figure, model, random, times)


def draw(target: Path, model: Array, random: Array, times: Array) -> None:
    """Draw regret and time by trial."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    from pogp.report.style import FIGURE, METHODS

    trials = np.arange(1, len(random) + 1)
    colours = METHODS["absorbing"].colour, METHODS["random"].colour
    with rc_context(FIGURE):
        figure = Figure(figsize=(7.2, 3.2), layout="constrained")
        left, right = figure.subplots(1, 2)
        left.plot(trials, model, color=colours[0], label="expected improvement")
        left.plot(trials, random, color=colours[1], label="random search")
        left.set(title="Regret of the answer", xlabel="trials", ylabel="regret")
        left.set(xscale="log", yscale="log")
        left.legend(loc="lower left")
        right.plot(trials[RANDOM + 1 :], 1e3 * times, ".", ms=2, color=colours[0])
        right.set(title="Time per trial", xlabel="trials", ylabel="milliseconds")
        right.set_ylim(0.0, 3e3 * float(np.median(times)))
        figure.savefig(target)


if __name__ == "__main__":
    main()

"""The picture of accuracy against memory, which takes most of the time."""

import numpy as np
from matplotlib.figure import Figure

import pogp
from pictures.style import DENSE, below, new
from pogp.metrics import coverage, nlpd, smse
from pogp.models import Model
from pogp.report.style import METHODS

SIZES = (25, 50, 100, 200, 400, 800)
SEEDS = (0, 1, 2)


def frontier() -> Figure:
    """Draw the test error on the arm against the model order."""
    scores: dict[str, list[list[float]]] = {}
    for seed in SEEDS:
        for name, errors in arm_errors(seed).items():
            scores.setdefault(name, []).append(errors)
    figure, (axes,) = new(1, 1, height=4.2)
    for name, marker in (("random", "^"), ("pog", "s"), ("sogp", "D"), ("absorbing", "o")):
        errors = np.array(scores[name])
        mean = errors.mean(axis=0)
        reach = np.abs(np.stack((errors.min(axis=0), errors.max(axis=0))) - mean)
        look = METHODS[name]
        label = f"{look.label}, everywhere" if name == "pog" else look.label
        options = {"marker": marker, "markersize": 5, "capsize": 2.5, "elinewidth": 1.0}
        axes.errorbar(SIZES, mean, reach, color=look.colour, label=label, **options)
    rehearsed = np.mean(scores["rehearsed"], axis=0)
    look = METHODS["absorbing"]
    axes.plot(SIZES, rehearsed, "--", color=look.colour, label=f"{look.label}, rehearsed")
    dense = np.array(scores["dense"])
    axes.axhline(dense.mean(), color=DENSE, label="dense GP, 4,500 points")
    axes.axhspan(dense.min(), dense.max(), color=DENSE, alpha=0.12, linewidth=0)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(SIZES, [str(size) for size in SIZES])
    axes.set_yticks((0.03, 0.05, 0.1, 0.2, 0.4, 0.8), ("0.03", "0.05", "0.1", "0.2", "0.4", "0.8"))
    axes.minorticks_off()
    axes.set(xlabel="model order M (points)", ylabel="test SMSE", ylim=(0.025, 1.15))
    axes.set_title("The arm: 4,500 samples, mean and range of three seeds")
    for name, errors in scores.items():
        mean = "  ".join(f"{value:.4f}" for value in np.mean(errors, axis=0))
        print(f"frontier: {name:10} {mean}")
    below(figure, axes)
    return figure


def arm_errors(seed: int) -> dict[str, list[float]]:
    """Return the test SMSE of each method at each size, after one pass over the arm's stream."""
    data = pogp.datasets.arm(5000, seed)
    tuned = pogp.tune(data.x_train[:500], data.y_train[:500], seed=seed)
    prior = (tuned.kernel, tuned.noise)
    dense = pogp.DenseGP(*prior)
    methods = {
        "absorbing": [pogp.AbsorbingPOG(*prior, None, max_size=size) for size in SIZES],
        "pog": [pogp.POG(*prior, None, view="everywhere", max_size=size) for size in SIZES],
        "sogp": [pogp.SOGP(*prior, size) for size in SIZES],
        "random": [pogp.RandomSubset(*prior, size, seed=seed) for size in SIZES],
        "dense": [dense],
    }
    errors: dict[str, list[float]] = {}
    for name, models in methods.items():
        for model in models:
            model.learn(data.x_train[500:], data.y_train[500:])
            errors.setdefault(name, []).append(error_of(model, data, f"seed {seed} {name:9}"))
            if name == "absorbing":
                again = error_of(model.rehearsed(), data, f"seed {seed} rehearsed")
                errors.setdefault("rehearsed", []).append(again)
    return errors


def error_of(model: Model, data: pogp.datasets.Dataset, label: str) -> float:
    """Return the test SMSE, and print it with other scores."""
    mean, variance = model.predict(data.x_test)
    error = smse(data.y_test, mean, data.y_train.var())
    print(
        f"frontier: {label} {model.size:4} points, SMSE {error:.4f}, "
        f"NLPD {nlpd(data.y_test, mean, variance):6.3f}, "
        f"in 95 % band {100 * coverage(data.y_test, mean, variance):.1f} %",
        flush=True,
    )
    return error

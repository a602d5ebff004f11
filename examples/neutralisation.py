"""Control by gradients of predictions: keep waste water neutral while its acid changes.

A base is added to acid water so that the pH at the outlet is 7. The pH is a steep function of the
base and of the incoming acid, which is measured. Every minute the controller chooses the amount of
base for which the predicted pH is closest to 7. `minimize` minimises the squared error plus the
variance of the prediction, with the derivatives of `model.gradient`. The variance keeps the
controller away from amounts that it knows little about. Then the pH is measured and learned. From
half way on the base becomes weaker, by 15 % at the end; the controller does not know it.

A feedback controller (integral, with a gain for the steepest part of the curve) can only act after
an error has occurred. It also runs for the first minutes, until there is a model.

    python examples/neutralisation.py --figure neutral.png
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # threads slow down small products

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

import pogp

Array = NDArray[np.float64]
WANTED, NOISE = 7.0, 0.05
LEAST, MOST = 0.0, 2.0
"""Litres of base per minute."""
STEEPEST, CURVE = 12.0, 1.5
"""The largest slope of the pH by the base, and the pH by which an order of magnitude changes it."""
BEGIN = 40
"""Minutes under feedback, with some excitation, before the model takes over."""
EFFORT = 0.01
"""The cost of changing the base by a litre per minute."""


def outlet(base: float, acid: float, strength: float) -> float:
    """Return the pH at the outlet."""
    return float(WANTED + CURVE * np.arcsinh(STEEPEST / CURVE * (strength * base - acid)))


def inflow(minutes: int, rng: np.random.Generator) -> Array:
    """Return the acid that comes in: it wanders, and jumps now and then."""
    jumps = np.where(rng.random(minutes) < 0.03, rng.uniform(-0.4, 0.4, minutes), 0.0)
    acid, level = np.empty(minutes), 1.0
    for i, step in enumerate(jumps + 0.01 * rng.normal(size=minutes)):
        level = float(np.clip(level + step, 0.5, 1.5))
        acid[i] = level
    return acid


def chosen(model: pogp.OnlineGP, before: float, acid: float) -> float:
    """Return the base for which the predicted pH is nearest to what is wanted, and sure."""

    def cost(base: Array) -> tuple[float, Array]:
        x = np.array([base[0], acid])
        mean, variance = model.predict(x, latent=True)
        of_mean, of_variance = model.gradient(x)
        move = base - before
        value = (mean - WANTED) ** 2 + variance + EFFORT * float(move @ move)
        slope = 2 * (mean - WANTED) * of_mean[:1] + of_variance[:1] + 2 * EFFORT * move
        return float(value), slope

    starts = np.array([before, *np.linspace(LEAST, MOST, 5)])
    means, variances = model.predict([[start, acid] for start in starts], latent=True)
    costs = (means - WANTED) ** 2 + variances + EFFORT * (starts - before) ** 2
    start = starts[[int(np.argmin(costs))]]
    found = minimize(cost, start, jac=True, method="L-BFGS-B", bounds=[(LEAST, MOST)])
    return float(found.x[0])


def run(minutes: int, seed: int, learning: bool) -> Array:
    """Return the pH at the outlet, by minute."""
    rng = np.random.default_rng(seed)
    acid, noise = inflow(minutes, rng), NOISE * rng.normal(size=minutes)
    excitation = 0.1 * rng.normal(size=minutes)
    model = pogp.OnlineGP(max_size=60)
    base, error, found = 1.0, 0.0, np.empty(minutes)
    for i in range(minutes):
        if learning and i >= BEGIN:
            base = chosen(model, base, acid[i])
        else:
            base = float(np.clip(base - error / STEEPEST, LEAST, MOST))
        added = float(np.clip(base + excitation[i], LEAST, MOST)) if i < BEGIN else base
        found[i] = outlet(added, acid[i], 1.0 - 0.3 * max(i / minutes - 0.5, 0.0))
        measured = found[i] + noise[i]
        error = measured - WANTED
        if learning:
            model.learn([added, acid[i]], measured)
    return found


def main() -> None:
    """Run both controllers on the same water, and say how far the pH was off."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--figure", type=Path, help="where to write a picture")
    options = parser.parse_args()
    if options.minutes < 4 * BEGIN:
        parser.error(f"--minutes must be at least {4 * BEGIN}, got {options.minutes}")
    names = {"feedback": False, "by gradients": True}
    runs = {name: run(options.minutes, options.seed, on) for name, on in names.items()}
    half = options.minutes // 2
    print("root mean square of pH − 7, before and while the base gets weaker:")
    for name, found in runs.items():
        off = [np.sqrt(np.mean((part - WANTED) ** 2)) for part in (found[BEGIN:half], found[half:])]
        print(f"{name:>14} {off[0]:.2f} {off[1]:.2f}")
    if options.figure:
        draw(options.figure, runs)


def draw(target: Path, runs: dict[str, Array]) -> None:
    """Draw the pH over time."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    from pogp.report.style import FIGURE, METHODS

    colours = dict(zip(runs, (METHODS["random"].colour, METHODS["absorbing"].colour), strict=True))
    with rc_context(FIGURE):
        figure = Figure(figsize=(7.2, 3.6), layout="constrained")
        panels = figure.subplots(len(runs), 1, sharex=True, sharey=True)
        for panel, (name, found) in zip(panels, runs.items(), strict=True):
            panel.axvspan(0, BEGIN, color="0.92", lw=0)
            panel.axvline(len(found) // 2, color="0.6", lw=1, ls=":")
            panel.plot(found, color=colours[name], lw=1)
            panel.set(title=f"pH under control {name}" if "by" in name else f"pH under {name}")
            panel.set(ylabel="pH", ylim=(2.5, 11.5))
        panels[-1].set(xlabel="minutes; grey: feedback; dotted: from here on the base gets weaker")
        figure.savefig(target)


if __name__ == "__main__":
    main()

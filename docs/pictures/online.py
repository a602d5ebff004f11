"""The pictures of the page about `OnlineGP`."""

from collections.abc import Iterator

import numpy as np
from matplotlib.figure import Figure

import pogp
from pictures.style import ABSORBING, GRID, below, new
from pogp.arrays import Array
from pogp.metrics import coverage
from pogp.report.style import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY_BLUE

STAYS, MOVES, JUMPS = 0, 1500, 3000
"""From which sample on the function of the first two pictures does what."""
LENGTH, NOISE, SIZE = 4500, 0.1, 50
EXPERTS = "mean, last target, linear models"
MEMBERS = {
    "forgetting 1.0": BLUE,
    "forgetting 0.9999": GREEN,
    "forgetting 0.999": ORANGE,
    "forgetting 0.99": PURPLE,
    EXPERTS: GREY,
}


def changing() -> tuple[Array, Array]:
    """Return a stream whose function stays, moves from 1,500 on, and jumps at 3,000."""
    rng = np.random.default_rng(0)
    x, position = rng.uniform(-3, 3, LENGTH), np.arange(LENGTH)
    return x[:, None], function(x, position) + NOISE * rng.normal(size=LENGTH)


def function(x: Array, position: Array | int) -> Array:
    """Return the function at a position of the stream."""
    shift = np.clip(position - MOVES, 0, JUMPS - MOVES) / 500
    return np.sin(2 * x + shift) + np.where(np.asarray(position) >= JUMPS, 2.0, 0.0)


def learned(model: pogp.OnlineGP, X: Array, y: Array, every: int) -> Iterator[tuple[int, Array]]:
    """Learn a stream; yield the position and the errors of every so many samples."""
    for start in range(0, len(y), every):
        trace = model.learn(X[start : start + every], y[start : start + every])
        yield start + len(trace.mean), y[start : start + every] - trace.mean


def weights() -> Figure:
    """Draw which members carry the weight as a function stays, moves and jumps."""
    X, y = changing()
    model = pogp.OnlineGP(max_size=SIZE)
    at, shares, errors = [], [], []
    for position, missed in learned(model, X, y, 25):
        at.append(position)
        shares.append(by_forgetting(model))
        errors.append(np.sqrt(np.mean(missed**2)))
    figure, (top, bottom) = new(2, 1, height=4.8, sharex=True, height_ratios=(1.5, 1))
    stacked = np.array([[share[name] for share in shares] for name in MEMBERS])
    top.stackplot(at, stacked, colors=list(MEMBERS.values()), labels=list(MEMBERS), alpha=0.75)
    top.set(ylabel="weight", ylim=(0, 1), xlim=(0, LENGTH))
    top.set_title("Which members carry the weight")
    bottom.plot(at, errors, color=ABSORBING)
    bottom.axhline(NOISE, color="black", linewidth=0.8)
    bottom.set_yscale("log")
    bottom.set_yticks((0.1, 0.3, 1.0, 3.0), ("0.1", "0.3", "1", "3"))
    bottom.minorticks_off()
    bottom.set(xlabel="samples seen", ylabel="rms error", ylim=(0.06, 3.5))
    bottom.set_title("Predicted before learned, mean of 25 samples (line: the noise)")
    for axes in (top, bottom):
        for change in (MOVES, JUMPS):
            axes.axvline(change, color=PURPLE, linestyle=":", linewidth=1.4)
    names = ("stays", "moves slowly", "has jumped, stays")
    for name, start in zip(names, (STAYS, MOVES, JUMPS), strict=True):
        bottom.text(start + 750, 2.1, name, ha="center", fontsize=9, color="#555555")
    squares = np.square(errors)
    for start in (500, MOVES, 2000, JUMPS, 3500):
        chosen = (np.array(at) > start) & (np.array(at) <= start + 500)
        share = stacked[:, chosen].mean(axis=1).round(2)
        error = np.sqrt(squares[chosen].mean())
        print(f"weights: {start} to {start + 500}: {share}, rms {error:.3f}")
    for event in model.history:
        print("weights:", *event)
    below(figure, top, columns=2)
    return figure


def by_forgetting(model: pogp.OnlineGP) -> dict[str, float]:
    """Return the weights of members added up by their forgetting."""
    shares = dict.fromkeys(MEMBERS, 0.0)
    for name, weight in model.weights.items():
        kind = next((kind for kind in MEMBERS if name.split(", ")[1:2] == [kind]), EXPERTS)
        shares[kind] += weight
    return shares


def bands() -> Figure:
    """Draw the 95 % band before a jump and at two moments after it."""
    X, y = changing()
    model = pogp.OnlineGP(max_size=SIZE)
    figure, panels = new(1, 3, height=3.4, sharey=True)
    before = 0
    for axes, after in zip(panels, (0, 50, 500), strict=True):
        model.learn(X[before : JUMPS + after], y[before : JUMPS + after])
        before = JUMPS + after
        mean, _ = model.predict(GRID[:, None])
        low, high = model.interval(GRID[:, None])
        axes.fill_between(GRID, low, high, color=ABSORBING, alpha=0.18, linewidth=0)
        axes.plot(GRID, mean, color=ABSORBING, label="OnlineGP, 95 % band")
        true = function(GRID, before - 1)
        axes.plot(GRID, true, "--", color="black", linewidth=1.1, label="the function now")
        last = slice(before - 50, before)
        axes.plot(X[last], y[last], ".", color=GREY, markersize=3, label="last 50 samples")
        axes.set_title("before the jump" if after == 0 else f"{after} samples after")
        axes.set(xlabel="input x", xlim=(-3, 3))
        rng = np.random.default_rng(after)
        fresh = function(GRID, before - 1) + NOISE * rng.normal(size=(200, len(GRID)))
        inside = np.mean((low <= fresh) & (fresh <= high))
        rms = np.sqrt(np.mean((mean - true) ** 2))
        width = np.mean(high - low)
        print(f"bands: {after} after: rms {rms:.3f}, width {width:.2f}, holds {inside:.3f}")
    panels[0].set_ylabel("y")
    below(figure, panels[0])
    return figure


def wakes() -> Figure:
    """Draw a target at rest for 1,000 samples that begins to move."""
    rng = np.random.default_rng(1)
    rest, n = 1000, 2600
    x = rng.uniform(0, 10, n)
    awake = np.arange(n) >= rest
    y = 20 + np.where(awake, np.sin(x) + NOISE * rng.normal(size=n), 0.0)
    model = pogp.OnlineGP(max_size=SIZE)
    trace = model.learn(x[:, None], y)
    deviation, error = np.sqrt(trace.variance), y - trace.mean
    figure, (top, bottom) = new(2, 1, height=4.6, sharex=True)
    shown = np.arange(900, n)
    low, high = (trace.mean[shown] + sign * 1.96 * deviation[shown] for sign in (-1, 1))
    top.fill_between(shown, low, high, color=ABSORBING, alpha=0.3, linewidth=0, label="95 % band")
    top.plot(shown, y[shown], ".", color=GREY, markersize=2, label="target")
    top.set(ylabel="y", ylim=(18, 22), xlim=(900, n))
    top.set_title("A target at rest that wakes at sample 1,000, predicted before learned")
    last = np.full(25, 1 / 25)
    rms, size = (np.sqrt(np.convolve(a, last)[shown]) for a in (error**2, trace.variance))
    bottom.plot(shown, rms, color=SKY_BLUE, label="rms error")
    bottom.plot(shown, size, color=ABSORBING, label="reported deviation")
    bottom.axhline(NOISE, color="black", linewidth=0.8, label="noise")
    bottom.set_yscale("log")
    bottom.set_yticks((0.03, 0.1, 0.3, 1.0), ("0.03", "0.1", "0.3", "1"))
    bottom.minorticks_off()
    bottom.set(xlabel="samples seen", ylabel="size", ylim=(0.02, 3))
    bottom.set_title("Root of the mean square of the last 25 samples")
    for axes in (top, bottom):
        axes.axvline(rest, color=PURPLE, linestyle=":", linewidth=1.4)
    for start, stop in ((1000, 1050), (1050, 1200), (1200, 1600), (1600, 2200), (2200, 2600)):
        part = slice(start, stop)
        inside = coverage(y[part], trace.mean[part], trace.variance[part])
        size = np.sqrt(np.mean(error[part] ** 2))
        print(f"wakes: {start} to {stop}: rms {size:.3f}, in the band {inside:.3f}")
    for event in model.history:
        print("wakes:", *event)
    below(figure, top, bottom, columns=5)
    return figure

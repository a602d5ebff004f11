"""The pictures of docs/absorbing.md but the last, which is in frontier.py."""

import numpy as np
from matplotlib.figure import Figure

import pogp
from pictures.beliefs import absorbing_prices, belief, discarding_prices, flat, said
from pictures.streams import samples, truth_shifted
from pictures.style import ABSORBING, GRID, POG, band, below, new, reference, ticks
from pogp.metrics import coverage, nlpd
from pogp.report.style import GREY, METHODS, PURPLE, SKY_BLUE


def loses() -> Figure:
    """Draw POG and absorbing POG with as few points, beside the dense GP."""
    kernel, noise, size = pogp.RBF(), 0.16, 10
    X, y = samples(300, noise, seed=2)
    dense = pogp.DenseGP(kernel, noise)
    models = {
        "pog": pogp.POG(kernel, noise, None, view="everywhere", max_size=size),
        "absorbing": pogp.AbsorbingPOG(kernel, noise, None, max_size=size, share=0),
    }
    dense.learn(X, y)
    exact = dense.predict(GRID[:, None], latent=True)
    figure, panels = new(1, 2, height=3.5, sharey=True)
    for axes, (name, model) in zip(panels, models.items(), strict=True):
        model.learn(X, y)
        mean, variance = model.predict(GRID[:, None], latent=True)
        look = METHODS[name]
        axes.plot(X, y, ".", color=GREY, alpha=0.35, markersize=3, label="300 samples")
        band(axes, GRID, mean, variance, look.colour, f"{look.label}, 10 points, ± 2 sd")
        reference(axes, exact[0], "dense GP, all 300 points")
        if name == "pog":
            axes.plot(model.dictionary, model.targets, "o", color=look.colour, markersize=5)
        ticks(axes, model.dictionary[:, 0], look.colour)
        off = np.sqrt(np.mean((mean - exact[0]) ** 2))
        axes.set_title(f"{look.label}: rms {off:.3f} off dense")
        axes.set(xlabel="input x", xlim=(-3, 3), ylim=(-2.7, 2.7))
        print(f"loses: {name} {off:.4f} from the dense mean")
    panels[0].set_ylabel("function f(x)")
    below(figure, panels[0], panels[1], columns=2)
    return figure


def removal() -> Figure:
    """Draw how one point goes: by discarding its sample, and by conditioning."""
    kernel, noise, gone = pogp.RBF(), 0.09, 3
    X = np.array([-2.3, -1.4, -0.5, 0.25, 0.9, 1.7, 2.5])[:, None]
    y = np.array([0.25, -0.9, -0.75, 1.15, 0.75, 0.1, -0.35])
    exact = pogp.POG(kernel, noise, None)
    exact.learn(X, y)
    before = exact.predict(GRID[:, None], latent=True)
    core = belief(kernel, noise, X, y)
    prices = (discarding_prices(kernel, noise, X, y)[gone], absorbing_prices(core)[gone])
    exact.remove(gone)
    core.remove(gone, marginalise=False)
    after = (exact.predict(GRID[:, None], latent=True), flat(core.predict(GRID[:, None])))
    titles = (
        f"Discarded: moves by H = {prices[0]:.2f}",
        f"Absorbed: moves by H = {prices[1]:.2f}",
    )
    figure, panels = new(1, 2, height=3.4, sharey=True)
    for axes, title, (mean, variance), colour in zip(
        panels, titles, after, (POG, ABSORBING), strict=True
    ):
        name = "without its sample" if colour == POG else "its sample absorbed"
        reference(axes, before[0], "before, ± 2 sd (dotted)", before[1])
        band(axes, GRID, mean, variance, colour, f"after: {name}, ± 2 sd")
        stay = np.arange(len(y)) != gone
        axes.plot(X[stay], y[stay], "o", color=GREY, markersize=5)
        axes.plot(X[gone], y[gone], "X", color=PURPLE, markersize=8, label="the point that goes")
        axes.set_title(title)
        axes.set(xlabel="input x", xlim=(-3, 3), ylim=(-2.2, 2.2))
    panels[0].set_ylabel("function f(x)")
    print(f"removal: discarded {prices[0]:.3f}, absorbed {prices[1]:.3f}")
    below(figure, panels[0], panels[1], columns=2)
    return figure


def kept() -> Figure:
    """Draw the points as pseudo-observations: their values, error bars and correlations."""
    kernel, noise, size = pogp.RBF(), 0.16, 10
    X, y = samples(300, noise, seed=2)
    model = pogp.AbsorbingPOG(kernel, noise, None, max_size=size, share=0)
    model.learn(X, y)
    data = said(model)
    order = np.argsort(data.inputs[:, 0])
    spread = np.linalg.inv(data.matrix[np.ix_(order, order)])
    values = spread @ data.vector[order, 0]
    places = data.inputs[order, 0]
    deviations = np.sqrt(np.diagonal(spread))
    figure, (left, right) = new(1, 2, height=3.5, width_ratios=(1.6, 1))
    mean, variance = model.predict(GRID[:, None], latent=True)
    left.plot(X, y, ".", color=GREY, alpha=0.3, markersize=3, label="300 samples, noise sd 0.4")
    band(left, GRID, mean, variance, ABSORBING, "posterior, ± 2 sd")
    left.errorbar(
        places,
        values,
        2 * deviations,
        fmt="o",
        color=PURPLE,
        capsize=3,
        markersize=5,
        label="pseudo-observations Λ⁻¹η, ± 2 sd",
    )
    left.set(xlabel="input x", ylabel="function f(x)", xlim=(-3.2, 3.2), ylim=(-2.7, 2.7))
    left.set_title("Ten values in place of 300")
    correlations = spread / np.outer(deviations, deviations)
    drawn = right.imshow(correlations, cmap="PuOr", vmin=-1, vmax=1, aspect="auto")
    right.grid(visible=False)
    labels = range(1, size + 1)
    right.set_xticks(range(size), labels, fontsize=8)
    right.set_yticks(range(size), labels, fontsize=8)
    right.set(xlabel="point, from left to right")
    right.set_title("Their errors' correlations")
    figure.colorbar(drawn, ax=right, ticks=(-1, -0.5, 0, 0.5, 1))
    print(f"kept: pseudo-noise sd {deviations.min():.3f} to {deviations.max():.3f}")
    below(figure, left)
    return figure


def price() -> Figure:
    """Draw what the removal of each of a dozen points costs."""
    kernel, noise = pogp.RBF(), 0.04
    X, y = samples(14, noise, seed=12)
    core = belief(kernel, noise, X, y)
    mean, variance = flat(core.predict(GRID[:, None]))
    figure, (top, bottom) = new(2, 1, height=4.6, sharex=True, height_ratios=(1.1, 1))
    band(top, GRID, mean, variance, ABSORBING, None)
    top.plot(X, y, "o", color=GREY, markersize=5)
    top.set(ylabel="function f(x)")
    top.set_title("The posterior, mean ± 2 sd, and its points")
    absorbed, discarded = absorbing_prices(core), discarding_prices(kernel, noise, X, y)
    bottom.vlines(X[:, 0], absorbed, discarded, color=POG, linewidth=0.8)
    bottom.plot(X, discarded, "s", color=POG, markersize=5, label="sample discarded, as in POG")
    bottom.vlines(X[:, 0], 1e-12, absorbed, color=ABSORBING, linewidth=1.6)
    bottom.plot(X, absorbed, "o", color=ABSORBING, markersize=5, label="sample absorbed")
    best = int(np.argmin(absorbed))
    for axes in (top, bottom):
        axes.axvline(X[best, 0], color=PURPLE, linestyle=":", linewidth=1.6, zorder=0)
    bottom.set_yscale("log")
    bottom.set(xlabel="input x", ylabel="Hellinger distance", xlim=(-3.1, 3.1), ylim=(1e-8, 3))
    bottom.set_title("What the whole posterior moves if the point goes (dotted: the cheapest)")
    for j in np.argsort(X[:, 0]):
        print(f"price: x {X[j, 0]:6.2f} absorbed {absorbed[j]:.1e} discarded {discarded[j]:.4f}")
    below(figure, bottom)
    return figure


def calibration() -> Figure:
    """Draw a model with five times the true noise, with and without `calibrate`."""
    X, y = samples(3000, 0.01, seed=5)
    traces, models = {}, {}
    for calibrate in (False, True):
        model = pogp.AbsorbingPOG(pogp.RBF(), 0.05, budget=0.1, calibrate=calibrate)
        traces[calibrate], models[calibrate] = model.learn(X, y), model
    scale = traces[True].variance / traces[False].variance
    figure, (top, bottom) = new(2, 1, height=4.2, sharex=True)
    seen = np.arange(1, len(y) + 1)
    top.plot(seen, scale, color=ABSORBING)
    top.axhline(0.2, color=GREY, linestyle="--", linewidth=1.2)
    top.text(3000, 0.17, "true ÷ assumed noise variance", ha="right", va="top", color="#555555")
    top.set(ylabel="factor of the variance", ylim=(0, 1.05))
    top.set_title("model.scale, as it was at each sample")
    window = 300
    looks = {False: (GREY, "as assumed"), True: (ABSORBING, "calibrate=True")}
    for calibrate, (colour, label) in looks.items():
        trace = traces[calibrate]
        inside = np.abs(y - trace.mean) <= 1.96 * np.sqrt(trace.variance)
        share = np.convolve(inside, np.full(window, 1 / window), mode="valid")
        bottom.plot(seen[window - 1 :], 100 * share, color=colour, label=label)
        test = samples(2000, 0.01, seed=6)
        mean, variance = models[calibrate].predict(test[0])
        print(
            f"calibration: {label}: size {models[calibrate].size}, scale "
            f"{models[calibrate].scale:.3f}, test coverage {coverage(test[1], mean, variance):.4f},"
            f" NLPD {nlpd(test[1], mean, variance):.3f}"
        )
    bottom.axhline(95, color="black", linestyle="--", linewidth=1.2, label="95 %, as it should be")
    bottom.set(xlabel="samples seen", ylabel="in the 95 % band (%)", xlim=(0, 3000))
    bottom.set_ylim(91, 100.4)
    bottom.set_title(f"Predicted before learned: share in the band, over {window} samples")
    below(figure, bottom)
    return figure


def forgetting() -> Figure:
    """Draw the errors on a function that stays for a while, and then moves."""
    rng = np.random.default_rng(4)
    n, still, size = 4000, 1500, 30
    x = rng.uniform(-3, 3, n)
    shift = np.maximum(np.arange(n) - still, 0) / 500
    y = truth_shifted(x, shift) + 0.1 * rng.normal(size=n)
    kernel, noise = pogp.RBF(), 0.01
    models = [
        (
            "absorbing POG, forgetting=1",
            ABSORBING,
            "--",
            pogp.AbsorbingPOG(kernel, noise, None, max_size=size),
        ),
        (
            "absorbing POG, forgetting=0.99",
            ABSORBING,
            "-",
            pogp.AbsorbingPOG(kernel, noise, None, max_size=size, forgetting=0.99),
        ),
        ("POG, newest", POG, "-", pogp.POG(kernel, noise, None, max_size=size)),
        (
            "POG, everywhere",
            POG,
            "--",
            pogp.POG(kernel, noise, None, view="everywhere", max_size=size),
        ),
    ]
    figure, (left, right) = new(1, 2, height=3.5, width_ratios=(1, 1.7))
    for at, colour in ((0, SKY_BLUE), (2500, PURPLE), (4000, GREY)):
        moved = max(at - still, 0) / 500
        left.plot(GRID, truth_shifted(GRID, moved), color=colour, label=f"after {at:,} samples")
    left.set(xlabel="input x", ylabel="function f(x)", xlim=(-3, 3), ylim=(-1.2, 2.9))
    left.set_yticks((-1, 0, 1))
    left.set_title("The function moves")
    left.legend(loc="upper left", title=None)
    window = 150
    for label, colour, line, model in models:
        trace = model.learn(x[:, None], y)
        squared = (y - trace.mean) ** 2
        rms = np.sqrt(np.convolve(squared, np.full(window, 1 / window), mode="valid"))
        right.plot(
            np.arange(window, n + 1)[::40], rms[::40], color=colour, linestyle=line, label=label
        )
        before, after = (np.sqrt(np.mean(part)) for part in (squared[500:still], squared[2000:]))
        print(f"forgetting: {label} rms {before:.3f} before it moves, {after:.3f} from 2000 on")
    right.axvline(still, color=GREY, linestyle=":", linewidth=1.2)
    right.axhline(0.1, color="black", linewidth=0.8)
    right.text(60, 0.094, "noise", va="top", fontsize=8)
    right.set_yscale("log")
    right.set_yticks((0.1, 0.2, 0.5, 1.0), ("0.1", "0.2", "0.5", "1"))
    right.minorticks_off()
    right.set(xlabel="samples seen", ylabel="rms error", xlim=(0, n), ylim=(0.08, 1.6))
    right.set_title(f"Predicted before learned, mean of {window} samples")
    below(figure, right, columns=2)
    return figure


def merging() -> Figure:
    """Draw two shards of a stream, learned apart, and what they know together."""
    kernel, noise = pogp.RBF(), 0.16
    parts = [samples(100, noise, 7, -3, 0.6), samples(100, noise, 8, -0.6, 3)]
    shards = [pogp.AbsorbingPOG(kernel, noise, budget=0.1) for _ in parts]
    for model, (X, y) in zip(shards, parts, strict=True):
        model.learn(X, y)
    dense = pogp.DenseGP(kernel, noise)
    for X, y in parts:
        dense.learn(X, y)
    exact = dense.predict(GRID[:, None], latent=True)
    figure, panels = new(1, 3, height=3.3, sharey=True)
    merged = shards[0].copy().merge(shards[1])
    names = ("Shard A", "Shard B", "A merged with B")
    for axes, name, model in zip(panels, names, (*shards, merged), strict=True):
        mean, variance = model.predict(GRID[:, None], latent=True)
        band(axes, GRID, mean, variance, ABSORBING, "absorbing POG, ± 2 sd")
        reference(axes, exact[0], "dense GP on all 200 samples, ± 2 sd (dotted)", exact[1])
        ticks(axes, model.dictionary[:, 0], ABSORBING)
        axes.set_title(f"{name}: {model.size} points")
        axes.set(xlabel="input x", xlim=(-3, 3), ylim=(-2.7, 2.7))
    panels[0].set_ylabel("function f(x)")
    mean, variance = merged.predict(GRID[:, None], latent=True)
    off = np.abs(mean - exact[0]).max()
    ratio = np.sqrt(variance / exact[1])
    print(
        f"merging: sizes {shards[0].size}, {shards[1].size}, {merged.size}; mean at most {off:.3f} "
        f"off the dense GP's, sd {ratio.min():.2f} to {ratio.max():.2f} of its"
    )
    below(figure, panels[0])
    return figure

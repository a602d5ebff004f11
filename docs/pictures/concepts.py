"""The pictures of docs/concepts.md."""

import numpy as np
from matplotlib.figure import Figure

import pogp
from pictures.streams import samples, truth
from pictures.style import GRID, POG, band, below, new, reference, ticks
from pogp.arrays import Array
from pogp.report.style import BLUE, GREEN, GREY, METHODS, ORANGE, PURPLE, VERMILLION


def grows() -> Figure:
    """Draw what the dense GP holds on the way through a stream, beside POG and absorbing POG."""
    kernel, noise, n, step = pogp.RBF(), 0.16, 2000, 50
    X, y = samples(n, noise, seed=2)
    models = {
        "dense": pogp.DenseGP(kernel, noise),
        "pog": pogp.POG(kernel, noise, budget=0.1, view="everywhere"),
        "absorbing": pogp.AbsorbingPOG(kernel, noise, budget=0.1),
    }
    figure, (left, right) = new(1, 2, height=3.4)
    seen = np.arange(step, n + 1, step)
    for name, model in models.items():
        sizes, bytes_held = [], []
        for start in range(0, n, step):
            model.learn(X[start : start + step], y[start : start + step])
            sizes.append(model.size)
            bytes_held.append(model.nbytes)
        look = METHODS[name]
        left.plot(seen, sizes, color=look.colour, label=look.label)
        right.plot(seen, np.array(bytes_held) / 2**20, color=look.colour)
        print(f"grows: {name} {model.size} points, {model.nbytes / 2**20:.2f} MiB after {n}")
    for axes in (left, right):
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.set(xlabel="samples seen", xlim=(0, n))
    left.set_title("Points kept")
    right.set_title("Memory, MiB")
    below(figure, left)
    return figure


def distance() -> Figure:
    """Draw pairs of normal densities at a few Hellinger distances."""
    figure, panels = new(2, 4, height=3.4, sharex=True, sharey=True)
    x = np.linspace(-4, 6, 401)
    for column, wanted in enumerate((0.05, 0.1, 0.3, 0.6)):
        shift = np.sqrt(-8 * np.log1p(-(wanted**2)))  # the same variance: −log BC = shift²/8
        squared = (1 - wanted**2) ** 2  # BC² = 2s/(1 + s²) for the same mean and an sd of s
        widened = (1 + np.sqrt(1 - squared**2)) / squared
        for row, (mean, deviation) in enumerate(((shift, 1.0), (0.0, widened))):
            axes = panels[4 * row + column]
            axes.fill_between(x, density(x, 0, 1), color=GREY, alpha=0.25, linewidth=0)
            axes.plot(x, density(x, mean, deviation), color=VERMILLION)
            axes.set_yticks(())
            axes.set_xticks((-2, 0, 2, 4))
            found = float(pogp.hellinger(0, 1, mean, deviation**2))
            axes.set_title(f"H = {found:.2f}" if row == 0 else "")
            print(f"distance: H {found:.3f} mean {mean:.2f} sd {deviation:.2f}")
    panels[0].set_ylabel("mean moves")
    panels[4].set_ylabel("sd grows")
    return figure


def density(x: Array, mean: float, deviation: float) -> Array:
    """Return the normal density."""
    return np.exp(-0.5 * ((x - mean) / deviation) ** 2) / (deviation * np.sqrt(2 * np.pi))


def budgets() -> Figure:
    """Draw the model order along a stream, and the distance to the dense GP, for some budgets."""
    kernel, noise, n = pogp.RBF(), 0.16, 2000
    X, y = samples(n, noise, seed=2)
    dense = pogp.DenseGP(kernel, noise)
    dense.learn(X, y)
    exact, _ = dense.predict(GRID[:, None], latent=True)
    figure, (left, right) = new(1, 2, height=3.4)
    colours = (BLUE, GREEN, VERMILLION, PURPLE, ORANGE)
    seen = np.arange(1, n + 1)
    for budget, colour in zip((0.01, 0.03, 0.1, 0.3, 0.6), colours, strict=True):
        model = pogp.AbsorbingPOG(kernel, noise, budget)
        trace = model.learn(X, y)
        off = np.sqrt(np.mean((model.predict(GRID[:, None])[0] - exact) ** 2))
        left.plot(seen, trace.size, color=colour, label=f"budget {budget:g}")
        right.plot(model.size, off, "o", color=colour)
        place = {"xytext": (0, 8), "textcoords": "offset points", "ha": "center"}
        right.annotate(f"{budget:g}", (model.size, off), **place)
        print(f"budgets: {budget:g} {model.size} points, rms {off:.4f} off the dense mean")
    left.set(xlabel="samples seen", ylabel="points kept", xlim=(0, n), ylim=(0, None))
    left.set_title("Size follows from the budget")
    right.set_yscale("log")
    right.yaxis.set_major_formatter("{x:g}")
    right.minorticks_off()
    right.margins(x=0.1, y=0.14)
    right.set(xlabel="points kept at the end", ylabel="rms off the dense mean")
    right.set_title("Less error, more points")
    below(figure, left)
    return figure


def views() -> Figure:
    """Draw POG after a stream that travels from left to right, with either view."""
    kernel, noise, n = pogp.RBF(), 0.04, 600
    rng = np.random.default_rng(3)
    x = np.sort(rng.uniform(-3, 3, n))
    y = truth(x) + np.sqrt(noise) * rng.normal(size=n)
    dense = pogp.DenseGP(kernel, noise)
    dense.learn(x[:, None], y)
    exact = dense.predict(GRID[:, None], latent=True)
    figure, panels = new(1, 2, height=3.5, sharey=True)
    for axes, view in zip(panels, ("newest", "everywhere"), strict=True):
        model = pogp.POG(kernel, noise, budget=0.1, view=view)
        model.learn(x[:, None], y)
        mean, variance = model.predict(GRID[:, None], latent=True)
        axes.plot(x, y, ".", color=GREY, alpha=0.3, markersize=3, label="600 samples")
        band(axes, GRID, mean, variance, POG, "POG, budget 0.1, ± 2 sd")
        reference(axes, exact[0], "dense GP, all points")
        ticks(axes, model.dictionary[:, 0], POG)
        axes.set_title(f'view="{view}": {model.size} points')
        axes.set(xlabel="input x; the stream goes from left to right", xlim=(-3, 3))
        off = np.sqrt(np.mean((mean - exact[0]) ** 2))
        print(f"views: {view} {model.size} points, rms {off:.3f} off the dense mean")
    panels[0].set(ylabel="function f(x)", ylim=(-2.7, 2.7))
    below(figure, panels[0])
    return figure

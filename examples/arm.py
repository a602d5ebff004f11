"""The simulated arm as a stream, cell by cell: `python examples/arm.py [folder for the picture]`.

The inputs are the eight joint angles of a robot arm. The target is the distance of its hand from a
point, with noise. Samples arrive one at a time and are not kept. Editors that know `# %%` run the
file cell by cell.
"""

# %% Set-up
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # threads slow down small products

import sys
import tempfile
from pathlib import Path

import numpy as np

import pogp
from pogp.metrics import coverage, nlpd, smse

folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
folder.mkdir(parents=True, exist_ok=True)
data = pogp.datasets.arm(1500)
print(data)

# %% Hyperparameters from a first slice
# A few hundred samples are enough to find a length-scale for each joint, the signal variance and
# the noise. They are not used again below. (`OnlineGP()` would do this on its own.)
first, rest = slice(0, 300), slice(300, None)
tuned = pogp.tune(data.x_train[first], data.y_train[first], restarts=1)
print("length-scales:", np.round(tuned.kernel.lengthscale, 1), f"noise variance: {tuned.noise:.4f}")

# %% Learn, one sample at a time
# `learn` returns how each sample was predicted before it was learned: scores without a test set.
X, y = data.x_train[rest], data.y_train[rest]
model = pogp.AbsorbingPOG(tuned.kernel, tuned.noise, budget=None, max_size=100)
means, variances, spent = [], [], []
for x, target in zip(X, y, strict=True):
    trace = model.learn(x, target)
    means.append(trace.mean[0])
    variances.append(trace.variance[0])
    spent.append(trace.spent[0])
print(f"after {model.seen} samples: {model.size} points, {model.nbytes / 2**20:.1f} MiB")

# %% Scores of predictions before learning
# The standardised error of always predicting the mean is 1. It falls along the stream.
errors, variances = y - np.array(means), np.array(variances)
for start in range(0, len(y), 400):
    part = slice(start, start + 400)
    score = np.mean(errors[part] ** 2) / y.var()
    inside = np.mean(np.abs(errors[part]) <= 1.96 * np.sqrt(variances[part]))
    print(f"samples {start:4} to {start + 400:4}: SMSE {score:.3f}, in the 95% band {inside:.1%}")

# %% Too wide: calibrate
# More than 95% in the 95% band means that the variances are too large. `calibrate=True` scales them
# by the residuals so far.
calibrated = pogp.AbsorbingPOG(tuned.kernel, tuned.noise, None, max_size=100, calibrate=True)
calibrated.learn(X, y)  # a whole batch is the same as a loop, and faster
for name, each in (("as assumed", model), ("calibrated", calibrated)):
    mean, variance = each.predict(data.x_test)
    inside = coverage(data.y_test, mean, variance)
    loss = nlpd(data.y_test, mean, variance)
    print(f"{name}: scale {each.scale:.2f}, in the 95% band {inside:.1%}, test NLPD {loss:.3f}")

# %% What sets the size: a cap, an error, or both
# The budget is the Hellinger distance that one step may move the whole posterior, from 0 to 1. With
# a cap alone the model grows to the cap. With a budget alone it keeps as many points as needed.
# With both, the cap holds, and `spent` shows the steps that cost more than the budget.
ways = {
    "max_size=100": {"budget": None, "max_size": 100},
    "budget=0.7": {"budget": 0.7},
    "budget=0.5": {"budget": 0.5},
    "budget=0.5, max_size=100": {"budget": 0.5, "max_size": 100},
}
print(f"{'':26} {'points':>6} {'test SMSE':>9} {'spent: mean':>11} {'most':>5} {'over budget':>11}")
sizes = {}
for name, options in ways.items():
    each = pogp.AbsorbingPOG(tuned.kernel, tuned.noise, **options)
    trace = each.learn(X, y)
    sizes[name] = trace.size
    score = smse(data.y_test, each.predict(data.x_test)[0], data.y_train.var())
    limit = options["budget"]
    over = "no budget" if limit is None else f"{np.mean(trace.spent > limit):.0%} of steps"
    print(
        f"{name:26} {each.size:6} {score:9.3f} {trace.spent.mean():11.2f} {trace.spent.max():5.2f} "
        f"{over:>11}"
    )

# %% Compared with others of the same size
dense = pogp.DenseGP(tuned.kernel, tuned.noise)
others = {
    "absorbing POG": model,
    "POG, everywhere": pogp.POG(
        tuned.kernel, tuned.noise, None, view="everywhere", max_size=model.size
    ),
    "SOGP": pogp.SOGP(tuned.kernel, tuned.noise, model.size),
    "random subset": pogp.RandomSubset(tuned.kernel, tuned.noise, model.size),
    "dense GP": dense,
}
for name, each in others.items():
    if each is not model:
        each.learn(X, y)
    score = smse(data.y_test, each.predict(data.x_test)[0], data.y_train.var())
    print(f"{name:16} {each.size:5} points, test SMSE {score:.3f}")

# %% Save and load
# The file holds everything. The loaded model continues bit for bit as this one would.
path = folder / "arm.pogp"
model.save(path)
again = pogp.load(path)
same = np.array_equal(again.predict(data.x_test)[0], model.predict(data.x_test)[0])
print(f"saved {path.stat().st_size / 2**20:.1f} MiB and loaded; the same predictions: {same}")

# %% A picture, if matplotlib is there
try:
    from matplotlib.figure import Figure
except ImportError:
    print("no picture: pip install 'pogp[plot]'")
else:
    from pogp.report.style import GREY, PURPLE, SKY_BLUE, VERMILLION

    figure = Figure(figsize=(7.2, 5.0), layout="constrained")
    top, bottom = figure.subplots(2, 1, sharex=True)
    window = np.full(200, 1 / 200)
    seen = np.arange(len(window), len(y) + 1)
    top.plot(seen, np.convolve(errors**2 / y.var(), window, mode="valid"), color=VERMILLION)
    top.set_title("Predicted before learned, mean of 200 samples", loc="left")
    top.set_ylabel("SMSE")
    top.set_ylim(bottom=0)
    lines = zip(ways, (VERMILLION, PURPLE, SKY_BLUE, GREY), ("-", "-", "-", "--"), strict=True)
    for name, colour, line in lines:
        bottom.plot(np.arange(1, len(y) + 1), sizes[name], line, color=colour, label=name)
    bottom.set_title("Model order", loc="left")
    bottom.set(xlabel="samples seen", ylabel="points", xlim=(0, len(y)))
    bottom.legend(frameon=False, fontsize=8)
    figure.savefig(folder / "arm.png", dpi=160)
    print("picture:", folder / "arm.png")

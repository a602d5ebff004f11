"""Write the golden files of the schema in force: `python tests/golden/make.py`.

Each is a small model in `schema-<n>/<name>.pogp`, and beside it, in `<name>.json`, what it predicts
and what it predicts after learning more. Files that exist are never written again: they are what
users have on their disks. A new schema gets a folder of its own, a new model a file of its own, and
all of them stay.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import pogp
from pogp.files import persistence
from pogp.models import SelfTuning

FOLDER = Path(__file__).parent
LEARNED, MORE = 60, 12
"""Samples before the file is written, and after it is read."""
SEARCHED = 1e-4
"""How close predictions are, at least, where a search for hyperparameters lies between."""


def stream(n: int, outputs: int | None = None) -> tuple[Any, Any]:
    """Samples that need no generator of random numbers: inputs fill a square, targets are wavy."""
    t = np.arange(1, n + 1)
    X = 2 * np.modf(t[:, None] * np.array([0.7548776662466927, 0.5698402909980532]))[0] - 1
    y = np.sin(3 * X[:, 0]) * np.cos(2 * X[:, 1]) + 0.1 * np.sin(97.0 * t)
    return X, y if outputs is None else np.column_stack([y + i * X[:, 1] for i in range(outputs)])


QUERIES = stream(400)[0][-5:]


def users_kernel(A: Any, B: Any) -> Any:
    """Return what is code, which a file has no room for."""
    return np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=2))


def users_budget(t: int) -> float:
    """Return what is code too."""
    return 0.01 / (t + 1)


@dataclass(frozen=True)
class Golden:
    """A model to be saved: how it is made and taught, and what has to be supplied when loading.

    `fit` are the options of a model that is fitted to all samples at once.
    """

    make: Callable[[], Any]
    learned: int = LEARNED
    fit: dict[str, Any] | None = None
    outputs: int | None = None
    tolerance: float = 1e-9
    code: dict[str, Any] = field(default_factory=dict)
    notes: dict[str, Any] | None = None

    def teach(self, model: Any, start: int, stop: int) -> None:
        """Learn the samples from `start` to `stop`, or be fitted to all of them up to there."""
        X, y = stream(stop, self.outputs)
        if self.fit is None:
            model.learn(X[start:], y[start:])
        else:
            model.fit(X, y, **self.fit)

    def made(self) -> Any:
        """Return the model as it is saved."""
        model = self.make()
        self.teach(model, 0, self.learned)
        return model


RBF, NOISE = pogp.RBF((0.7, 0.9), 1.3), 0.05
SUM, PRODUCT = pogp.RBF(0.8) + pogp.Matern12(1.5), pogp.RBF(1.1) * pogp.Matern52((0.9, 1.2))
NESTED = (pogp.RBF(0.8, 0.5) + pogp.Matern12(0.7)) * pogp.Matern32((2.0, 3.0)) + pogp.RBF(5.0)
SEASONAL = pogp.RationalQuadratic((0.7, 0.9), 0.8, 1.5) * pogp.Periodic(3.0, columns=[0])
TREND = pogp.Linear((0.5, 0.2)) + pogp.Constant(0.3)
MODELS: dict[str, Golden] = {
    "pog": Golden(partial(pogp.POG, RBF, NOISE, 1e-3, mean=0.6)),
    "pog-empty": Golden(partial(pogp.POG, RBF, NOISE), learned=0),
    "pog-decay": Golden(
        partial(pogp.POG, pogp.Matern32(0.8), NOISE, pogp.Decay(0.1, 0.5), max_removals=1)
    ),
    "pog-everywhere": Golden(
        partial(pogp.POG, SUM, NOISE, pogp.Constant(0.15), view="everywhere", max_size=12)
    ),
    "pog-little-noise": Golden(partial(pogp.POG, PRODUCT, 1e-4, None, max_size=12)),
    "pog-noted": Golden(
        partial(pogp.POG, RBF, NOISE, max_size=8), notes={"inputs": ["left", "right"], "n": 60}
    ),
    "pog-without-code": Golden(
        partial(pogp.POG, users_kernel, NOISE, users_budget, max_size=12),
        code={"kernel": users_kernel, "budget": users_budget},
    ),
    "pog-trend": Golden(partial(pogp.POG, SEASONAL + TREND, NOISE, max_size=12)),
    "dense": Golden(partial(pogp.DenseGP, pogp.Matern52(0.8), NOISE, mean=0.6), learned=20),
    "random": Golden(partial(pogp.RandomSubset, NESTED, NOISE, 12, seed=3, mean=0.6)),
    "window": Golden(partial(pogp.SlidingWindow, pogp.Matern12((0.8, 0.9)), NOISE, 12)),
    "sogp": Golden(partial(pogp.SOGP, RBF, NOISE, 12, mean=0.6)),
    "mcintire": Golden(partial(pogp.McIntire, RBF, NOISE, 0.1, mean=0.6)),
    "krls-ald": Golden(partial(pogp.KRLSALD, RBF, NOISE, mean=0.6), learned=20),
    "krls-t": Golden(partial(pogp.KRLST, SUM, NOISE, 12, forgetting=0.98, mean=0.6)),
    "absorbing": Golden(partial(pogp.AbsorbingPOG, RBF, NOISE, 0.3, mean=0.6)),
    "absorbing-recent": Golden(partial(pogp.AbsorbingPOG, RBF, NOISE, None, max_size=12)),
    "absorbing-outputs": Golden(
        partial(
            pogp.AbsorbingPOG,
            PRODUCT,
            NOISE,
            pogp.Decay(0.3, 0.1),
            forgetting=0.99,
            calibrate=True,
            max_size=12,
        ),
        outputs=3,
    ),
    "absorbing-marginalise": Golden(
        partial(pogp.AbsorbingPOG, RBF, 1e-4, None, max_size=12, projection="marginalise")
    ),
    "streaming-vfe": Golden(partial(pogp.StreamingVFE, RBF, NOISE, 10, batch=30, mean=0.6)),
    "streaming-vfe-reoptimised": Golden(
        partial(pogp.StreamingVFE, RBF, NOISE, 5, batch=30, reoptimise=True), tolerance=SEARCHED
    ),
    "streaming-vfe-inputs": Golden(
        partial(pogp.StreamingVFE, RBF, NOISE, 5, inputs=QUERIES, batch=20)
    ),
    "smola-bartlett": Golden(partial(pogp.SmolaBartlett, RBF, NOISE, 8, mean=0.6), fit={}),
    "keerthi-chu": Golden(partial(pogp.KeerthiChu, SUM, NOISE, 8), fit={}),
    "seeger": Golden(partial(pogp.Seeger, PRODUCT, NOISE, 8), fit={}),
    "spgp": Golden(
        partial(pogp.SPGP, RBF, NOISE, 4, mean=0.6), fit={"max_iterations": 5}, tolerance=SEARCHED
    ),
    "vfe": Golden(
        partial(pogp.VFE, pogp.Matern32(0.8), NOISE, 4),
        fit={"max_iterations": 5},
        tolerance=SEARCHED,
    ),
    "self-tuning-empty": Golden(partial(SelfTuning, "sogp", max_size=12), learned=0),
    "self-tuning-warming-up": Golden(partial(SelfTuning, warmup=100, scale=True), outputs=2),
    "self-tuning": Golden(partial(SelfTuning, kernel=pogp.Matern32, warmup=40, max_size=12)),
    "self-tuning-given": Golden(
        partial(
            SelfTuning,
            "pog",
            kernel=NESTED,
            noise=NOISE,
            budget=pogp.Decay(0.3, 0.5),
            view="everywhere",
            max_size=12,
        )
    ),
    "self-tuning-scaled": Golden(
        partial(SelfTuning, warmup=40, kernel=PRODUCT, scale=True, max_size=12), outputs=2
    ),
    "self-tuning-offline": Golden(
        partial(SelfTuning, "keerthi-chu", kernel=RBF, noise=NOISE, size=8), fit={}
    ),
    "online-empty": Golden(partial(pogp.OnlineGP, max_size=12), learned=0),
    "online": Golden(partial(pogp.OnlineGP, max_size=6, seed=3), learned=30, tolerance=SEARCHED),
    "online-outputs": Golden(
        partial(pogp.OnlineGP, max_size=5, robust=False), learned=17, outputs=2, tolerance=SEARCHED
    ),
}
RETIRED: dict[str, Golden] = {
    "absorbing-auto-warming-up": Golden(partial(SelfTuning, warmup=100)),
    "absorbing-auto": Golden(partial(SelfTuning, warmup=40, kernel=pogp.Matern52, max_size=12)),
}
"""Models that are only in files of earlier schemas: what they would be today."""


def state(model: Any) -> dict[str, Any]:
    """Return what is expected of a model again after loading."""
    mean, variance = model.predict(QUERIES)
    found = {"mean": mean.tolist(), "variance": variance.tolist()}
    return {"seen": model.seen, "size": model.size, **found}


def write(name: str, folder: Path) -> None:
    """Write one model and what it does next, unless they exist."""
    golden, path = MODELS[name], folder / f"{name}.pogp"
    if path.exists():
        raise FileExistsError(f"{path} is what users have on their disks, and stays")
    model = golden.made()
    expected = {"now": state(model)}
    model.save(path, without_code=bool(golden.code), notes=golden.notes)
    golden.teach(model, golden.learned, golden.learned + MORE)
    expected["later"] = state(model)
    with path.with_suffix(".json").open("x", encoding="utf-8") as file:
        json.dump(expected, file, indent=1)


def main() -> None:
    """Write the files of this schema that are missing."""
    folder = FOLDER / f"schema-{persistence.SCHEMA}"
    folder.mkdir(exist_ok=True)
    missing = [name for name in MODELS if not (folder / f"{name}.pogp").exists()]
    for name in missing:
        write(name, folder)
        print(folder / f"{name}.pogp")
    print(f"{len(missing)} written, {len(MODELS) - len(missing)} left as they were")


if __name__ == "__main__":
    main()

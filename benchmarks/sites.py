"""What kept samples would gain if new points learned from them: `python -m benchmarks.sites`.

A sample i that was absorbed is known to the model as wᵢᵀu, its regression on the points of then.
Removals by conditioning keep that exact. A new point x does not: with γ = Var(f(x) | u),
cᵢ = Cov(f(xᵢ), f(x) | u) and e = [−w, 1], the regression on all points is [wᵢ, 0] + (cᵢ/γ) e. The
direction e is the same for all samples, so that any number of them changes Λ by rank two alone:

    Λ ← Λ + eaᵀ + aeᵀ + b eeᵀ,   η ← η + e h,
    a = Σ(cᵢ/γ)wᵢ/σ²,   b = Σ(cᵢ/γ)²/σ²,   h = Σ(cᵢ/γ)yᵢ/σ².

Samples that are always treated so have wᵢ = Qκ(Z, xᵢ), and nothing has to be stored but raw samples
and κ(Z, xᵢ). Then a = Q Σ κ(Z, xᵢ)(cᵢ/γ)/σ². With U = [e, a] and C⁻¹ = [[0, 1], [1, −b]] the belief
follows as from two observations:

    G = SU,   N = C⁻¹ + UᵀG,   S ← S − GN⁻¹Gᵀ,   m ← m + GN⁻¹([0, h] − Uᵀm).

Λ stays a sum of squares, so S stays positive. A sample that leaves the reservoir keeps the site it
has. Here this is done in the NumPy core, on parts of the simulated arm and on five parts of kin40k.
"""

import sys
from collections.abc import Iterator

import numpy as np

import pogp
from benchmarks.rehearsal import PARTS
from pogp.arrays import Array
from pogp.criteria import AbsorbedCriterion
from pogp.posteriors.absorbed.loop import AbsorbedLoop
from pogp.posteriors.slots import cheapest
from pogp.reservoir import Reservoir

SIZE, KEPT = 392, 1000
Samples = tuple[Array, Array]


class Sited(AbsorbedLoop):
    """The NumPy core, with samples of a reservoir that teach each new point that stays."""

    def stream(
        self, criterion: AbsorbedCriterion, X: Array, y: Array, kept: Reservoir, size: int
    ) -> int:
        """Learn all samples; return at how many of them kept samples taught a point."""
        taught, noises = 0, np.array([self.noise])
        for i, x in enumerate(X):
            at = self.look(x)
            if self.size and at.gamma <= criterion.closed(self.noise, at.kappa0):
                self.absorb(at, y[i : i + 1], noises, criterion.reduce)
            else:
                self.append(at, y[i : i + 1], noises, i)
                goes = cheapest(criterion.costs(self), self.arrivals) == self.size - 1
                if len(kept) and not (goes and self.size > size):
                    self._teach(kept)
                    taught += 1
            self._compress(criterion, self.noise, (-np.inf, size, 0), 0)
            kept.add_one(X, y[:, None], i)
        return taught

    def _teach(self, kept: Reservoir) -> None:
        """Let the samples count for the newest point, which was just appended."""
        q = self.inverse[:, -1]
        e = q / q[-1]  # [−w, 1], and γ = 1/q
        cross = self.kernel(self.inputs, kept.inputs)
        share = q @ cross  # c/γ
        b = float(share @ share) / self.noise
        h = share @ (kept.targets - self.mean) / self.noise
        a = self.inverse @ (cross @ share) / self.noise - b * e
        a[-1] = 0.0
        U = np.stack([e, a], axis=1)
        G = self.covariance[0] @ U
        N = np.array([[0.0, 1.0], [1.0, -b]]) + U.T @ G
        QG = self.inverse @ G
        surprise = np.linalg.solve(N, np.stack([np.zeros_like(h), h]) - U.T @ self.values[0])
        self.covariance = self.covariance - (G @ np.linalg.solve(N, G.T))[None]
        self.values = self.values + (G @ surprise)[None]
        self.weights = self.weights + QG @ surprise
        self.spread = self.spread - np.einsum("ij,ji->i", QG, np.linalg.solve(N, QG.T))
        pair = np.outer(e, a + 0.5 * b * e)
        self.information = self.information + (pair + pair.T)


def parts(name: str) -> Iterator[tuple[Samples, Samples, Samples]]:
    """Yield samples to tune by, to learn and to test by, of kin40k or of the simulated arm."""
    if name == "kin40k":
        data = pogp.datasets.load(name)
        X, y = np.vstack([data.x_train, data.x_test]), np.append(data.y_train, data.y_test)
    else:
        data = pogp.datasets.arm(16_000, 10, n_test=1)
        X, y = data.x_train, data.y_train
    for start in range(0, len(y), 8000):
        tuning, rows, test = (slice(start + a, start + b) for a, b in PARTS)
        yield (X[tuning], y[tuning]), (X[rows], y[rows]), (X[test], y[test])


def scores(tuning: Samples, rows: Samples, test: Samples, prior: bool) -> list[float]:
    """Return the SMSE of the model, and with its samples; and how often these taught a point."""
    tuned = pogp.tune(*tuning, prior=prior)
    model = pogp.AbsorbingPOG(tuned.kernel, tuned.noise, None, max_size=SIZE)
    model.learn(*rows)
    assert model._posterior is not None
    core = Sited(tuned.kernel, tuned.noise, np.zeros(1), rows[0].shape[1])
    kept = Reservoir(KEPT, core.dimension, 1, 0)
    taught = core.stream(model._posterior.criterion, *rows, kept, SIZE)
    means = (model.predict(test[0])[0], core.predict(test[0])[0][0, :, 0])
    errors = [pogp.metrics.smse(test[1], mean, test[1].var()) for mean in means]
    return [*errors, taught / len(rows[1])]


def main(names: list[str]) -> None:
    """Print a line per set and way to tune."""
    for name in names or ["arm", "kin40k"]:
        for prior in (False, True):
            runs = np.array([scores(*part, prior) for part in parts(name)])
            model, sited, taught = runs.mean(axis=0)
            how = "with a prior" if prior else "by the likelihood"
            print(f"{name}, tuned {how}: {model:.4f}, with kept samples {sited:.4f}, ", end="")
            print(f"at {taught:.0%} of the steps; {runs[:, 1].round(4)}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

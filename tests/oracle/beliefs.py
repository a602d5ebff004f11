"""Streams learned by a belief N(m, S) about u = f(Z), its matrices written out in full.

Nothing is kept but Z, m and S, nothing is incremental, and nothing is shared with the package:
every sample solves afresh with K. Rules differ in when a sample becomes a point, what a removal
costs, and how a point goes.
"""

from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import block_diag

from .brute_force import hellinger_joint

FLOOR = 1e-8
"""A point leaves at least this much of κ₀ open given the others, or is none."""
MOST = 4
"""So many redundant points go at one sample."""


@dataclass
class Belief:
    """A belief that learns; `steps` has one record for each sample, `kept` who is left after it."""

    kernel: object
    noise: float
    mean: float = 0.0
    tolerance: float = 0.0
    """A sample whose prior variance given u is at most this, of κ₀, becomes no point."""
    share: float = 0.0
    """The same as a share of the noise; and points of which the others leave no more open go."""
    project: bool = True
    """Whether points go by conditioning; otherwise by marginalising."""
    reduce: bool = False
    """Whether a sample that becomes no point is marginalised; else it is taken to observe wᵀu."""
    score: str = "hellinger"
    """What a removal costs: "hellinger", "csato", "error"; with "keep" none is made."""
    forgetting: float = 1.0
    recent: list = field(default_factory=list)
    """Samples that new points learn from, two for each point: of each x, y and noise."""
    kept: list = field(default_factory=list)
    steps: list = field(default_factory=list)
    seen: int = 0

    def learn(self, X, y, limit=-np.inf, max_size=np.inf, noises=None, weights=None):
        Y = y.reshape(len(y), -1)
        noises = np.full(len(y), self.noise) if noises is None else noises
        weights = np.ones(len(y)) if weights is None else weights
        if self.seen == 0:
            self.Z, self.m, self.S = X[:0], Y[:0], np.empty((0, 0))
            self.arrivals, self.relevance = [], np.empty(0)
        for x, target, noise, weight in zip(X, Y, noises, weights, strict=True):
            self._sample(x[None, :], target - self.mean, noise, weight, limit, max_size)
        return self

    def _sample(self, x, y, noise, weight, limit, max_size):
        means, variances = self.predict(x)
        w, gamma = self._regression(x)
        kappa0 = self.kernel(x, x)[0, 0]
        closed = max(self.share * self.noise, max(self.tolerance, FLOOR) * kappa0)
        absorbed = len(self.Z) > 0 and gamma <= closed
        if absorbed and not self.reduce:
            self._observe(w, y, noise)
        else:
            points, before = len(self.Z), self._sites()
            self._append(x, w, max(gamma, 0.0))
            self._observe(np.eye(len(self.Z))[-1], y, noise)
            self.arrivals.append(self.seen)
            self.relevance = np.append(self.relevance, weight)
            if self.project and self.forgetting == 1 and self.score == "hellinger":
                if self._next(limit, max_size, 0, 0)[0] != points:  # otherwise it goes at once
                    self._replace(np.pad(before, ((0, 1), (0, 0))))
                self.recent = [*self.recent, (x[0], y, noise)][-max(2 * points, 1) :]
            if absorbed:
                self.marginalise(len(self.Z) - 1)
        costs = self._compress(limit, max_size)
        self.seen += 1
        self.S = self.forgetting * self.S + (1 - self.forgetting) * self.gram()
        self.m = np.sqrt(self.forgetting) * self.m
        self.kept.append(list(self.arrivals))
        self.steps.append(
            (means[0], variances[0] - self.noise + noise, sum(costs), absorbed + len(costs))
        )

    def _compress(self, limit, max_size):
        """Let redundant points go, then the cheapest; return what each cost."""
        costs, redundant = [], 0
        while True:
            j, cost, close = self._next(limit, max_size, sum(costs), redundant)
            if j is None:
                return costs
            costs, redundant = [*costs, cost], redundant + close
            (self.condition if self.project else self.marginalise)(j)

    def _next(self, limit, max_size, spent, redundant):
        """Return which point goes next, if any, what that costs, and whether it is redundant."""
        if len(self.Z) < 2 or self.score == "keep":
            return None, 0.0, False
        scores = self.relevance * self.scores()
        open_ = 1 / np.diagonal(np.linalg.inv(self.gram()))
        close = open_ <= np.maximum(self.share * self.noise, FLOOR * np.diagonal(self.gram()))
        nearest = redundant < MOST and close.any()
        scores = np.where(close, scores, np.inf) if nearest else scores
        j = int(np.argmin(scores))
        forced = nearest or len(self.Z) > max_size
        return (j if forced or spent + scores[j] <= limit else None), scores[j], nearest

    def predict(self, X):
        """Return the means (n, k) and the variance (n,) of y."""
        cross = self.kernel(self.Z, X)
        w = np.linalg.solve(self.gram(), cross)
        latent = np.diagonal(self.kernel(X, X) - w.T @ cross + w.T @ self.S @ w)
        return self.mean + w.T @ self.m, latent + self.noise

    def gram(self):
        return self.kernel(self.Z, self.Z)

    def _regression(self, x):
        k = self.kernel(self.Z, x)[:, 0]
        w = np.linalg.solve(self.gram(), k)
        return w, self.kernel(x, x)[0, 0] - k @ w

    def _append(self, x, w, gamma):
        """Add u at x, of which only the prior and the other points speak."""
        T = np.vstack([np.eye(len(self.Z)), w])
        self.S = T @ self.S @ T.T
        self.S[-1, -1] += gamma
        self.m = T @ self.m
        self.Z = np.vstack([self.Z, x])

    def _observe(self, h, y, noise):
        """Condition on y = hᵀu + noise."""
        gain = self.S @ h / (h @ self.S @ h + noise)
        self.m = self.m + np.outer(gain, y - h @ self.m)
        self.S = self.S - np.outer(gain, h @ self.S)

    def _sites(self):
        """Return what recent samples observe: the regression of each on the points, (points, n)."""
        if not self.recent:
            return np.empty((len(self.Z), 0))
        inputs = np.array([x for x, *_ in self.recent])
        return np.linalg.solve(self.gram(), self.kernel(self.Z, inputs))

    def _replace(self, before):
        """Let recent samples observe their regression on the points as they are now."""
        if self.recent:
            after, noises = self._sites(), np.array([noise for *_, noise in self.recent])
            y = np.array([target for _, target, _ in self.recent])
            P = np.linalg.inv(self.S)
            eta = P @ self.m + (after - before) / noises @ y
            self.S = np.linalg.inv(P + after / noises @ after.T - before / noises @ before.T)
            self.S = (self.S + self.S.T) / 2
            self.m = self.S @ eta

    def scores(self):
        Q = np.linalg.inv(self.gram())
        alpha, q = Q @ self.m, np.diagonal(Q)
        if self.score == "csato":
            return (alpha**2).sum(axis=1) / np.diagonal(Q @ self.S @ Q)
        if self.score == "error":
            return (alpha**2).sum(axis=1) / q**2
        distance = self._distance if self.forgetting == 1 else self._marginal_distance
        return np.array([distance(j) for j in range(len(self.Z))])

    def _marginal_distance(self, j):
        """The distance of what u_j adds to the others, as believed and as the prior has it."""
        T, slack = self._onto(j)
        row = np.eye(len(self.Z))[j].copy()
        row[np.arange(len(self.Z)) != j] = -T[j]
        outputs = np.eye(self.m.shape[1])
        return hellinger_joint(
            row @ self.m, (row @ self.S @ row) * outputs, np.zeros(len(outputs)), slack * outputs
        )

    def _distance(self, j):
        """The distance of the joint normals of all outputs at all points, before and after."""
        T, slack = self._onto(j)
        m, S = self._without(j)
        after = T @ S @ T.T
        after[j, j] += slack
        outputs = self.m.shape[1]
        before = (self.m.T.ravel(), block_diag(*[self.S] * outputs))
        return hellinger_joint(*before, (T @ m).T.ravel(), block_diag(*[after] * outputs))

    def _onto(self, j):
        """Return the regression of all points on all but j, and the variance that it leaves."""
        K, rest = self.gram(), np.arange(len(self.Z)) != j
        T = np.eye(len(self.Z))[:, rest]
        T[j] = np.linalg.solve(K[np.ix_(rest, rest)], K[rest, j])
        return T, K[j, j] - K[j, rest] @ T[j]

    def _without(self, j):
        """Return m and S of the other points after removing j."""
        rest = np.arange(len(self.Z)) != j
        if not self.project:
            return self.m[rest], self.S[np.ix_(rest, rest)]
        T, K = self._onto(j)[0], self.gram()
        total = np.linalg.inv(self.S)
        said = T.T @ (total - np.linalg.inv(K)) @ T
        S = np.linalg.inv(np.linalg.inv(K[np.ix_(rest, rest)]) + said)
        return S @ T.T @ total @ self.m, S

    def condition(self, j):
        self.m, self.S = self._without(j)
        self._drop(j)

    def marginalise(self, j):
        self.m = np.delete(self.m, j, axis=0)
        self.S = np.delete(np.delete(self.S, j, axis=0), j, axis=1)
        self._drop(j)

    def _drop(self, j):
        self.Z = np.delete(self.Z, j, axis=0)
        self.relevance = np.delete(self.relevance, j)
        self.recent = self.recent[-max(2 * len(self.Z), 1) :]
        del self.arrivals[j]

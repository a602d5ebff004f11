"""A belief N(m, S) about u = f(Z) in long doubles that follows the actions of a core.

Every step solves afresh with K, which holds the core's own double values of the kernel: their last
bits are given, and everything after them is to be right. Nothing is shared with the package.
"""

import numpy as np


def cholesky(A):
    L = np.array(A, dtype=np.longdouble)
    for j in range(len(L)):
        L[j:, j] -= L[j:, :j] @ L[j, :j]
        L[j:, j] /= np.sqrt(L[j, j])
    return np.tril(L)


def solve(L, B):
    """Return (LLᵀ)⁻¹B."""
    B = np.array(B, dtype=np.longdouble)
    for j in range(len(L)):
        B[j] = (B[j] - L[j, :j] @ B[:j]) / L[j, j]
    for j in range(len(L) - 1, -1, -1):
        B[j] = (B[j] - L[j + 1 :, j] @ B[j + 1 :]) / L[j, j]
    return B


class Follower:
    """Learns what a core has learned, given which points it kept."""

    def __init__(self, noise, forgetting=1.0, marginalise=False, closed=0.0):
        self.noise, self.forgetting, self.marginalise = noise, forgetting, marginalise
        self.closed = closed
        self.recent = []  # of each sample its arrival, y and κ(Z, x) by point
        self.arrivals = []
        self.K = self.S = np.empty((0, 0), dtype=np.longdouble)
        self.m = np.empty(0, dtype=np.longdouble)
        self._factor()

    def _factor(self):
        """Solve afresh with K, which most samples leave as it is."""
        self.L = cholesky(self.K)
        self.Q = solve(self.L, np.eye(len(self.K)))

    def look(self, k, kappa0):
        """Return w = K⁻¹k and what the points leave open of κ₀, for each column of k."""
        w = self.Q @ k
        w = w + self.Q @ (k - self.K @ w)
        return w, np.maximum(kappa0 - np.sum(w * k, axis=0), np.longdouble(0))

    def learn(self, k, kappa0, w, gamma, y, arrival, kept, cross):
        """Observe y where the kernel is k to the points (by arrival), and keep some of them.

        To recent samples, of which there are two for each point, it is `cross`.
        """
        points, before = len(self.m), self._sites() if arrival in kept else None
        if arrival in kept:
            self._append(k, kappa0, w, gamma, arrival)
            h, noise = np.eye(len(self.m), dtype=np.longdouble)[-1], self.noise
        else:  # as if it was appended and left at once
            h, noise = w, self.noise + gamma * self.marginalise
        gain = self.S @ h
        s = h @ gain + noise
        self.m = self.m + gain * ((y - h @ self.m) / s)
        self.S = self.S - gain[:, None] * (gain / s)
        if arrival in kept:
            self.recent = [
                (*one, np.append(c, new)) for (*one, c), new in zip(self.recent, cross, strict=True)
            ]
            self._replace(np.pad(before, ((0, 1), (0, 0))), self._sites())
        if self.forgetting == 1 and not self.marginalise and (gamma > self.closed or not points):
            own = [np.longdouble(kappa0)] if arrival in kept else []
            self.recent.append((arrival, y, np.append(k, own)))
            self.recent = self.recent[-max(2 * points, 1) :]
        if len(kept) < len(self.arrivals):
            for gone in [one for one in self.arrivals if one not in kept]:
                self._remove(self.arrivals.index(gone))
        if self.forgetting < 1:
            self.S = self.forgetting * self.S + (1 - self.forgetting) * self.K
            self.m = np.sqrt(np.longdouble(self.forgetting)) * self.m

    def _sites(self):
        """Return what recent samples observe: the regression of each on the points, (points, n)."""
        cross = [c for *_, c in self.recent]
        return solve(self.L, np.array(cross).T) if cross else np.empty((len(self.m), 0))

    def _replace(self, before, after):
        """Let recent samples observe something else."""
        y = np.array([one for _, one, _ in self.recent], dtype=np.longdouble)
        if len(y):
            P = solve(cholesky(self.S), np.eye(len(self.S)))
            eta = P @ self.m + (after - before) @ y / self.noise
            P = P + (after @ after.T - before @ before.T) / self.noise
            self.S = solve(cholesky(P), np.eye(len(P)))
            self.m = self.S @ eta

    def _append(self, k, kappa0, w, gamma, arrival):
        column = self.S @ w
        self.S = np.block([[self.S, column[:, None]], [column[None], w @ column + gamma]])
        self.m = np.append(self.m, w @ self.m)
        self.K = np.block([[self.K, k[:, None]], [k[None], np.longdouble(kappa0)]])
        self._factor()
        self.arrivals.append(arrival)

    def _remove(self, j):
        rest = np.arange(len(self.m)) != j
        if not self.marginalise:
            q = self.Q[j]
            c = self.S @ q
            b = q @ c
            self.m = self.m - c * (q @ self.m / b)
            self.S = self.S - np.outer(c, c) / b
        self.m, self.S, self.K = (
            self.m[rest],
            self.S[np.ix_(rest, rest)],
            self.K[np.ix_(rest, rest)],
        )
        self._factor()
        del self.arrivals[j]
        self.recent = [(*one, c[rest]) for *one, c in self.recent][-max(2 * len(self.m), 1) :]

    def predict(self, k, kappa0):
        """Return the means and latent variances where the kernel is k, (points, queries)."""
        w = solve(self.L, k)
        latent = kappa0 - np.sum(w * k, axis=0) + np.sum(w * (self.S @ w), axis=0)
        return w.T @ self.m, latent


def follow(core, rule, X, y, plan):
    """Let a core learn a stream one by one, and a `Follower` after it; return that."""
    closed = max(rule.share * core.noise, 1e-8 * PRIOR)
    follower = Follower(core.noise, core.forgetting[0], rule.marginalise, closed)
    one, slots, now, begin, span = np.ones(1), None, core.arrivals.tolist(), 0, 1
    for i, (x, target) in enumerate(zip(X, y, strict=True)):
        if now != slots or i == begin + span:  # look ahead, the further the longer points stay
            span = 1 if now != slots else min(2 * span, AHEAD)
            slots, begin = now, i
            ahead = kernel_values(core, X[i : i + span])[np.argsort(slots)]
            weights, left_open = follower.look(ahead, PRIOR)
        rows = (x[None], np.array([[target]]), core.noise * one, one)
        core.learn(rule, *rows, i, plan)
        now, at = core.arrivals.tolist(), i - begin
        looked, cross = (weights[:, at], left_open[at]), []
        if i in now and follower.recent:
            cross = kernel_values(core, X[[arrival for arrival, *_ in follower.recent]])[
                now.index(i)
            ]
        follower.learn(ahead[:, at], PRIOR, *looked, target - core.mean[0], i, now, cross)
    return follower


AHEAD = 256
"""So many samples at most have their kernel values computed together, while the points stay."""
PRIOR = 1.0
"""κ(x, x) of the kernels that are followed."""


def kernel_values(core, X):
    """Return κ(Z, X) by slot, as the core has it."""
    return core.regression(X)[2].T.astype(np.longdouble) if core.size else np.empty((0, len(X)))

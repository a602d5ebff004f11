"""Algorithms 1 and 2 from their definition: every candidate of every step solved afresh.

Nothing here is incremental and nothing is shared with the package. Distances are Hellinger's
H = sqrt(1 − BC), between predictive normals of y at the newest input (`newest`), or between the
joint normals of f at the points that left (`everywhere`).
"""

from dataclasses import dataclass

import numpy as np

NEAR = 1e-7
"""Distances this close (relatively, or to zero) are not told apart; the stream is to blame."""


def hellinger_1d(mean1, var1, mean2, var2):
    s1, s2 = np.sqrt(var1), np.sqrt(var2)
    log_bc = -0.5 * np.log1p((s1 - s2) ** 2 / (2 * s1 * s2))
    log_bc -= (mean1 - mean2) ** 2 / (4 * (var1 + var2))
    return np.sqrt(-np.expm1(log_bc))


def hellinger_joint(mean1, cov1, mean2, cov2):
    """Return the distance of two normals, or of many pairs of them at once."""
    middle = (cov1 + cov2) / 2
    (_, one), (_, two), (_, both) = (np.linalg.slogdet(c) for c in (cov1, cov2, middle))
    delta = mean1 - mean2
    shift = np.sum(delta * np.linalg.solve(middle, delta[..., None])[..., 0], axis=-1)
    log_bc = (one + two) / 4 - both / 2 - shift / 8
    return np.sqrt(np.maximum(-np.expm1(log_bc), 0.0))


@dataclass
class Step:
    """What one sample did: the record of the trace, and who is retained after it."""

    record: dict
    indices: list
    doubts: list
    """Decisions that hung on less than `NEAR`."""


class BruteForce:
    """The exact GP on some samples of a stream, compressed after each sample."""

    def __init__(self, X, y, kernel, noise, mean=0.0):
        self.X, self.y, self.noise, self.mean = X, y, noise, mean
        self.K = kernel(X, X)
        _, self.place = np.unique(X, axis=0, return_inverse=True)

    def posterior(self, members, at):
        """Return the mean and covariance of f at the samples `at`, given the samples `members`.

        Both may be stacked, to solve for many sets of samples at once.
        """
        members, at = np.asarray(members, int), np.asarray(at, int)
        gram = self.block(members, members) + self.noise * np.eye(members.shape[-1])
        cross = self.block(members, at)
        targets = (self.y[members] - self.mean)[..., None]
        solved = np.linalg.solve(gram, np.concatenate([cross, targets], axis=-1))
        turned = np.swapaxes(cross, -1, -2)
        mean = self.mean + (turned @ solved[..., -1:])[..., 0]
        return mean, self.block(at, at) - turned @ solved[..., :-1]

    def block(self, rows, columns):
        return self.K[rows[..., :, None], columns[..., None, :]]

    def marginal(self, members, t):
        """Return the mean and variance of y at sample t."""
        mean, covariance = self.posterior(members, np.full((*np.shape(members)[:-1], 1), t))
        return mean[..., 0], covariance[..., 0, 0] + self.noise

    def distances(self, view, augmented, gone, t):
        """Return, for each point left, how far the posterior without it and `gone` has moved."""
        rest = without(augmented, gone)
        left = np.array([without(rest, [j]) for j in rest])
        if view == "newest":
            return hellinger_1d(*self.marginal(augmented, t), *self.marginal(left, t))
        mean, covariance = self.posterior(augmented, augmented)
        places = [self.places([*gone, j]) for j in rest]
        counts, found = np.array([len(at) for at in places]), np.empty(len(rest))
        for count in np.unique(counts):  # of points with as many places
            some = counts == count
            at = np.array([at for at in places if len(at) == count])
            seen = np.searchsorted(augmented, at)
            before = mean[seen], covariance[seen[:, :, None], seen[:, None, :]]
            found[some] = hellinger_joint(*before, *self.posterior(left[some], at))
        return found

    def process_distance(self, augmented, gone, at=None):
        """Return the distance between the processes with and without `gone`, seen at `at`."""
        at = self.places(gone) if at is None else at
        rest = without(augmented, gone)
        return hellinger_joint(*self.posterior(augmented, at), *self.posterior(rest, at))

    def places(self, members):
        """Return one sample for each distinct input: elsewhere the joint normal is singular."""
        _, first = np.unique(self.place[members], return_index=True)
        return [members[i] for i in first]

    def run(self, budget, view, max_size=None, max_removals=None):
        """Learn the whole stream; return one `Step` for each sample."""
        kept, steps = [], []
        for t in range(len(self.y)):
            before = self.marginal(kept, t)
            augmented = [*kept, t]
            limit = None if budget is None else budget(t)
            gone, spent, doubts = self.compress(
                augmented, t, limit, view, max_size or np.inf, max_removals
            )
            kept = without(augmented, gone)
            record = {
                "mean": before[0],
                "variance": before[1],
                "size": len(kept),
                "removed": len(gone),
                "spent": spent,
                "novelty": hellinger_1d(*before, *self.marginal(augmented, t)),
                "change": hellinger_1d(*before, *self.marginal(kept, t)),
            }
            steps.append(Step(record, kept, doubts))
        return steps

    def compress(self, augmented, t, limit, view, max_size, max_removals):
        """Let the cheapest go while the budget allows it or the cap demands it."""
        gone, spent, doubts = [], 0.0, []
        while len(augmented) - len(gone) > 1:
            forced = len(augmented) - len(gone) > max_size
            exhausted = max_removals is not None and len(gone) >= max_removals
            if not forced and (limit is None or exhausted):
                break
            distances = self.distances(view, augmented, gone, t)
            least = distances.min()
            if not forced:
                if abs(least - limit) <= NEAR * limit:
                    doubts.append(f"sample {t}: is {least} within the budget?")
                if least > limit:
                    break
            cheapest = np.flatnonzero(distances <= max(least * (1 + NEAR), NEAR))
            if len(cheapest) > 1:
                doubts.append(f"sample {t}: {len(cheapest)} are equally cheap at {least}")
            gone.append(without(augmented, gone)[cheapest[0]])  # in order of arrival: the oldest
            spent = least
        return gone, spent, doubts


def without(members, gone):
    return [i for i in members if i not in gone]

"""What the two checks of consistency say, and what their z-test can and cannot tell."""

from __future__ import annotations

from dataclasses import dataclass
from math import erfc, sqrt
from typing import Any

import numpy as np
from scipy import stats

from experiments.methods import METHODS
from experiments.parts.consistency import CHECKS, MODELS, NOISES, Check
from experiments.readings.estimates import Estimate
from experiments.records import Record, Records
from pogp.arrays import Array

SIGNIFICANCE = 0.05
PUBLISHED_P = 0.9250
"""What the paper calls the probability that the hypothesis is satisfied; the check is Gaussian."""


@dataclass(frozen=True)
class ZTest:
    """A two-sided test of a mean whose standard error is known.

    The hypothesis is that the values are independent draws of the law. `p` is how often their mean
    would then be at least as far from the law's. It is not the probability that the hypothesis is
    true: where it is true, p is uniform on [0, 1]; a p near 0 speaks against it.
    """

    z: float

    @property
    def p(self) -> float:
        """The p-value.

        >>> round(ZTest(1.959964).p, 4), round(ZTest(-0.0941).p, 4)
        (0.05, 0.925)
        """
        return erfc(abs(self.z) / sqrt(2.0))

    @property
    def rejects(self) -> bool:
        """Whether the hypothesis falls at the paper's significance level."""
        return self.p < SIGNIFICANCE


@dataclass(frozen=True)
class Series:
    """The targets, or a model's predictions of them, over all repeats."""

    topic: str
    case: str
    records: list[Record]

    @property
    def label(self) -> str:
        """What it is called."""
        return "the targets" if self.case == "data" else METHODS[self.case].label

    @property
    def tests(self) -> list[ZTest]:
        """The z-tests of the last values, one for each repeat."""
        return [ZTest((self._of(r)["last_mean"] - mean) / error) for r, mean, error in self._last()]

    @property
    def rejected(self) -> int:
        """In how many repeats the z-test rejects."""
        return sum(test.rejects for test in self.tests)

    @property
    def order(self) -> Estimate:
        """The final model order; the targets have none."""
        return self._estimate("order")

    @property
    def last_mean(self) -> Estimate:
        """The mean that the z-test is of."""
        return self._estimate("last_mean")

    @property
    def error(self) -> Estimate:
        """Squared error over the second half, in units of the targets' variance."""
        return self._estimate("error")

    @property
    def spread(self) -> Estimate:
        """Variance of the values in the second half about the law's mean, beside the law's own."""
        return self._estimate("spread")

    @property
    def claimed(self) -> Estimate:
        """Predicted variance in the same unit; with the error it says whether the model knows."""
        return self._estimate("claimed")

    @property
    def distances(self) -> list[float]:
        """p-values of Kolmogorov–Smirnov tests of the second half, one for each repeat.

        The hypothesis is that of the z-test; this test sees the whole distribution.
        """
        counts = [stream_length(record) - stream_length(record) // 2 for record in self.records]
        return [
            float(stats.kstwo.sf(self._of(record)["distance"], count))
            for record, count in zip(self.records, counts, strict=True)
        ]

    @property
    def histogram(self) -> Array:
        """The density of the values in each bin, over all repeats."""
        counts = np.sum([self._of(record)["histogram"] for record in self.records], axis=0)
        values = sum(stream_length(record) for record in self.records)
        return np.asarray(counts / (values * np.diff(CHECKS[self.topic].edges)))

    def moving(self, name: str, seed: int = 0) -> Array:
        """Return the moving "mean" or "variance" of one repeat."""
        (record,) = (record for record in self.records if record.task.seed == seed)
        return np.array(self._of(record)[f"moving_{name}"])

    def _of(self, record: Record) -> dict[str, Any]:
        series: dict[str, Any] = record.result["series"][self.case]
        return series

    def _estimate(self, name: str) -> Estimate:
        return Estimate.of(self._of(record)[name] for record in self.records)

    def _last(self) -> list[tuple[Record, float, float]]:
        """Return with each record the mean of the last values under the law, and its error."""
        found = []
        for record in self.records:
            count, last = record.task.options["count"], record.task.options["last"]
            law = CHECKS[self.topic].law(np.arange(count - last, count) + 1.0)
            found.append((record, float(np.mean(law.mean())), sqrt(np.sum(law.var())) / last))
        return found


@dataclass(frozen=True)
class Consistency:
    """One of the two checks."""

    topic: str
    series: dict[str, Series]
    records: list[Record]

    @property
    def check(self) -> Check:
        """How the check was made, and what the paper prints."""
        return CHECKS[self.topic]

    @property
    def noise(self) -> tuple[float, float]:
        """The least and the largest noise variance that tuning found; there is none in the data."""
        found = [record.result["noise"] for record in self.records]
        return min(found), max(found)

    @property
    def order_at_noise(self) -> dict[float, Estimate]:
        """POG's final order, at most one removal, had it been given another noise variance."""
        orders = np.array([record.result["orders_at_noises"] for record in self.records])
        return {noise: Estimate.of(each) for noise, each in zip(NOISES, orders.T, strict=True)}

    def __getitem__(self, case: str) -> Series:
        return self.series[case]


def consistency(records: Records, topic: str) -> Consistency | None:
    """Return what was found on `gaussian` or `chi_square`; None where it has not been run."""
    found = records.of("consistency", topic)
    series = {case: Series(topic, case, found) for case in ("data", *MODELS)}
    return Consistency(topic, series, found) if found else None


def stream_length(record: Record) -> int:
    """Return how many samples came after the slice."""
    return int(record.task.options["count"] - record.task.options["first"])


def implied_z(p: float) -> float:
    """Return how far from the law's mean, in standard errors, a two-sided p-value is.

    >>> round(implied_z(PUBLISHED_P), 4)
    0.0941
    """
    return float(stats.norm.isf(p / 2))

"""What the runs on the paper's sets gave, beside what the paper prints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from experiments.methods import METHODS, Method
from experiments.parts.compare import ROWS
from experiments.published import SETS, Setting
from experiments.readings.estimates import Estimate
from experiments.records import Record, Records

TITLES = {"boston": "Boston", "abalone": "Abalone", "kin40": "kin40"}
"""What the sets are called in text."""
MATCHED = 3.0
"""Standard errors within which a published figure counts as matched."""


@dataclass(frozen=True)
class Row:
    """One method on one set: scores, the model order at the end, and what learning took."""

    topic: str
    case: str
    records: list[Record]

    @property
    def method(self) -> Method:
        """How the method is made and called."""
        return METHODS[self.case]

    @property
    def unbounded(self) -> bool:
        """Whether the method keeps every sample."""
        return self.case == "dense"

    @property
    def smse(self) -> Estimate:
        """Squared error in units of the variance of the training targets."""
        return self._test("smse")

    @property
    def msll(self) -> Estimate:
        """Log loss by the paper's formula."""
        return self._test("msll")

    @property
    def nlpd(self) -> Estimate:
        """Log loss with its constant, as in the paper's tables."""
        return self._test("nlpd")

    @property
    def coverage(self) -> Estimate:
        """Share of the test targets inside the 95 % band."""
        return self._test("coverage")

    @property
    def size(self) -> Estimate:
        """Model order at the end."""
        return Estimate.of(_final_size(record.result) for record in self.records)

    @property
    def seconds(self) -> Estimate:
        """Time to learn the whole stream."""
        return Estimate.of(record.result["seconds"] for record in self.records)

    @property
    def microseconds(self) -> Estimate | None:
        """Time of one update; offline methods have none."""
        if self.method.offline:
            return None
        return Estimate.of(record.result["microseconds"] for record in self.records)

    def printed(self, name: str) -> float | None:
        """Return the paper's figure for one of the properties above, in the same unit."""
        setting = SETS[self.topic]
        paper = setting.printed.get(self.case)
        if paper is None:
            return None
        figures = {
            "smse": paper.smse,
            "nlpd": paper.msll,
            "size": setting.streamed if self.unbounded else setting.size,
            "seconds": paper.epoch,
            "microseconds": None if paper.seconds is None else 1e6 * paper.seconds,
        }
        return figures.get(name)

    def matched(self, name: str) -> bool:
        """Return whether the paper's figure is within three of our standard errors."""
        return _within(getattr(self, name), self.printed(name))

    @property
    def msll_matched(self) -> bool:
        """Whether the printed loss is matched by the formula, without its constant."""
        return _within(self.msll, self.printed("nlpd"))

    def in_the_authors_order(self, name: str) -> float:
        """Return `smse`, `nlpd` or `size` of repeat 0: the samples in the order of the files."""
        first = next(record.result for record in self.records if record.task.seed == 0)
        return float(_final_size(first) if name == "size" else first["test"][name])

    def nearly_in_the_authors_order(self, name: str) -> bool:
        """Return whether repeat 0 is within a twentieth of the printed figure."""
        paper = self.printed(name)
        return paper is not None and abs(self.in_the_authors_order(name) / paper - 1) <= 0.05

    def worst_in_the_authors_order(self, name: str) -> bool:
        """Return whether every other order has a lower score."""
        authors, *others = (record.result["test"][name] for record in self.records)
        return bool(authors > max(others))

    def at_the_end(self, name: str, repeats: int) -> Estimate:
        """Return a score after the last sample, over the first few repeats only."""
        results = [record.result for record in self.records[:repeats]]
        return Estimate.of(
            each["curve"][name][-1] if "curve" in each else each["test"][name] for each in results
        )

    def _test(self, name: str) -> Estimate:
        return Estimate.of(record.result["test"][name] for record in self.records)


@dataclass(frozen=True)
class Comparison:
    """All methods on one set."""

    topic: str
    rows: Mapping[str, Row]

    @property
    def title(self) -> str:
        """What the set is called."""
        return TITLES[self.topic]

    @property
    def setting(self) -> Setting:
        """How the paper ran the set."""
        return SETS[self.topic]

    @property
    def streamed(self) -> int:
        """Samples after the slice."""
        return int(self["dense"].size.mean)

    def __getitem__(self, case: str) -> Row:
        return self.rows[case]

    def all_matched(self, case: str) -> bool:
        """Return whether a method's model order and scores are all as printed."""
        return all(self[case].matched(name) for name in ("size", "smse", "nlpd"))

    def beside_the_paper(self, name: str) -> dict[str, list[str]]:
        """Return which of the printed methods we match, which are lower here, which higher."""
        found: dict[str, list[str]] = {"matched": [], "lower": [], "higher": []}
        for row in self.rows.values():
            if (paper := row.printed(name)) is not None:
                apart = "lower" if getattr(row, name).mean < paper else "higher"
                found["matched" if row.matched(name) else apart].append(row.method.label)
        return found

    def best_online(self, name: str = "smse") -> Row:
        """Return the lowest score among methods that learn online in bounded memory."""
        bounded = [row for row in self.rows.values() if not (row.method.offline or row.unbounded)]
        return min(bounded, key=lambda row: float(getattr(row, name).mean))

    def lowest(self, name: str) -> Row:
        """Return the lowest score of all."""
        return min(self.rows.values(), key=lambda row: float(getattr(row, name).mean))

    def excess(self, one: str, other: str, score: str = "smse") -> Estimate:
        """Return how much higher one method's score is than the other's, repeat by repeat.

        Both meet the same stream in a repeat, so the difference is surer than either score.
        """
        of_one, of_other = (
            {record.task.seed: record.result["test"][score] for record in self[case].records}
            for case in (one, other)
        )
        return Estimate.of(value - of_other[seed] for seed, value in of_one.items())

    def worse(self, one: str, other: str, score: str = "smse") -> bool:
        """Return whether one method's score is clearly higher than the other's."""
        excess = self.excess(one, other, score)
        return excess.clear and excess.mean > 0


def comparison(records: Records, topic: str) -> Comparison | None:
    """Return what was measured on a set; None where it has not all been run."""
    rows = {case: Row(topic, case, records.of("compare", topic, case)) for case in ROWS}
    return Comparison(topic, rows) if all(row.records for row in rows.values()) else None


def _within(ours: Estimate, paper: float | None) -> bool:
    return paper is not None and abs(ours.mean - paper) <= MATCHED * ours.error


def _final_size(result: dict[str, Any]) -> float:
    """Return the last model order; `size` is its mean over the last steps."""
    return float(result["curve"]["size"][-1] if "curve" in result else result["size"])

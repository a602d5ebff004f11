"""How accurate each online method is at which model order."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from experiments.parts.frontier import GRID
from experiments.readings.estimates import Estimate
from experiments.records import Record, Records


@dataclass(frozen=True)
class Point:
    """One setting of a method, over its repeats."""

    setting: float
    """A cap on the size, or the number from which the size follows."""
    size: Estimate
    smse: Estimate
    nlpd: Estimate


@dataclass(frozen=True)
class Frontier:
    """The points of every online method on one set, by model order."""

    topic: str
    points: dict[str, list[Point]]

    @property
    def repeats(self) -> int:
        """How many repeats each point is a mean of."""
        return min(point.size.repeats for points in self.points.values() for point in points)

    def within(self, size: float, score: str = "smse") -> dict[str, Point]:
        """Return each method's best point of at most this size, the best method first.

        Methods without so small a model are left out.
        """
        best = {}
        for case, points in self.points.items():
            if small := [point for point in points if point.size.mean <= size]:
                best[case] = min(small, key=lambda point: float(getattr(point, score).mean))
        ranked = sorted(best.items(), key=lambda item: float(getattr(item[1], score).mean))
        return dict(ranked)

    def best(self, size: float) -> Point:
        """Return the lowest SMSE of at most this size."""
        return next(iter(self.within(size).values()))

    def leads(self, case: str, sizes: list[int]) -> bool:
        """Return whether a method has the lowest SMSE at each of these sizes."""
        return all(next(iter(self.within(size)), None) == case for size in sizes)

    def first_below(self, case: str, smse: float) -> Point:
        """Return a method's smallest point with an SMSE below a level, or else its largest."""
        points = self.points[case]
        return next((point for point in points if point.smse.mean < smse), points[-1])


def frontier(records: Records, topic: str) -> Frontier | None:
    """Return what was measured on a set; None where it has not all been run."""
    points = {case: _points(records.of("frontier", topic, case), GRID[case][0]) for case in GRID}
    return Frontier(topic, points) if all(points.values()) else None


def _points(records: list[Record], grade: str) -> list[Point]:
    by_setting: dict[float, list[Record]] = defaultdict(list)
    for record in records:
        by_setting[record.task.options[grade]].append(record)
    points = [
        Point(setting, *(_estimate(each, name) for name in ("size", "smse", "nlpd")))
        for setting, each in by_setting.items()
    ]
    return sorted(points, key=lambda point: point.size.mean)


def _estimate(records: list[Record], name: str) -> Estimate:
    return Estimate.of(record.result[name] for record in records)

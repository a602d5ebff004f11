"""The records as rows of tables: scores and times of each peer on each stream, and who wins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log

from benchmarks.peers.registry import OURS, PEERS, Peer
from benchmarks.peers.tasks import PART, PUBLISHED, RECORDED_ABOUT, SIMULATED, Topic
from experiments.readings.estimates import Estimate
from experiments.records import Record, Records

CLOSE = 1.1
"""Errors within this factor count as comparable."""
SLOW = 5.0
"""Times as slow as the fastest peer of comparable error, from which it is to be explained."""
MOST = 0.75
"""The share of streams that a peer has to come to the end of, to be compared over all of them."""
MAIN = "online"


@dataclass(frozen=True)
class Row:
    """What came of one peer on one stream, over its seeds."""

    case: str
    records: list[Record]

    @property
    def peer(self) -> Peer:
        """Who it is."""
        return PEERS[self.case]

    @property
    def failure(self) -> str | None:
        """Why a run failed; one that fails is enough."""
        reasons = (record.result.get("failure") for record in self.records)
        return next((reason for reason in reasons if reason), None)

    def estimate(self, name: str) -> Estimate | None:
        """Return the mean over the seeds; None where any of them has no such number."""
        values = [record.result.get(name) for record in self.records]
        numbers = [float(value) for value in values if value is not None]
        return Estimate.of(numbers) if len(numbers) == len(values) else None

    def mean(self, name: str) -> float:
        """Return the mean over the seeds of something that every finished run has."""
        found = self.estimate(name)
        if found is None:
            raise ValueError(f"{self.case} has no {name}: {self.failure or 'it is not recorded'}")
        return found.mean

    @property
    def versions(self) -> str:
        """The versions of its packages."""
        found = self.records[-1].result.get("versions") or {}
        return ", ".join(f"{name} {version}" for name, version in found.items())


@dataclass(frozen=True)
class Comparison:
    """All peers on one stream, the lowest error first and failures last."""

    topic: str
    rows: list[Row]

    @property
    def about(self) -> Topic | None:
        """The stream's title and what it is; None for a user's own table."""
        return (SIMULATED | PUBLISHED).get(self.topic)

    @property
    def title(self) -> str:
        """The stream's title."""
        return self.about.title if self.about else self.topic

    @property
    def description(self) -> str:
        """What the stream is."""
        if self.about:
            return self.about.about
        return RECORDED_ABOUT.get(self.topic, "in the order of its rows")

    @property
    def samples(self) -> int:
        """How long the stream was."""
        return max(int(row.records[0].result.get("samples", 0)) for row in self.rows)

    @property
    def finished(self) -> list[Row]:
        """The rows without a failure."""
        return [row for row in self.rows if row.failure is None]

    @property
    def ranked(self) -> list[Row]:
        """The rows without a failure that are not variants of another."""
        return [row for row in self.finished if not row.peer.variant]

    @property
    def tried(self) -> list[Row]:
        """OnlineGP with other settings."""
        return [row for row in self.finished if row.peer.variant]

    def row(self, case: str) -> Row | None:
        """Return the row of a peer that came to the end."""
        return next((row for row in self.finished if row.case == case), None)

    @property
    def first(self) -> Row:
        """The lowest error."""
        return self.ranked[0]

    def lowest(self, name: str) -> Row | None:
        """Return the row with the lowest value of a measure; None if no peer has it."""
        values = [(found.mean, row) for row in self.ranked if (found := row.estimate(name))]
        return min(values, key=lambda pair: pair[0])[1] if values else None

    @property
    def best_band(self) -> Row | None:
        """The row whose share in the 95 % band is closest to 95 %."""
        values = [
            (abs(found.mean - 0.95), row)
            for row in self.ranked
            if (found := row.estimate("inside"))
        ]
        return min(values, key=lambda pair: pair[0])[1] if values else None

    def behind(self, case: str = MAIN) -> float | None:
        """Return the error of a peer in units of the lowest; None if it did not finish."""
        row = self.row(case)
        return None if row is None else row.mean("smse") / self.first.mean("smse")

    def place(self, case: str = MAIN) -> int | None:
        """Return the place of a peer by error, from 1."""
        row = self.row(case)
        return None if row is None else self.ranked.index(row) + 1

    def rivals(self, case: str = MAIN) -> list[Row]:
        """Return the peers, not ours, whose error is comparable or lower, the fastest first."""
        row = self.row(case)
        if row is None:
            return []
        most = CLOSE * row.mean("smse")
        found = [
            each for each in self.finished if each.case not in OURS and each.mean("smse") <= most
        ]
        return sorted(found, key=lambda each: each.mean("mean_us"))

    def slower(self, case: str = MAIN) -> float | None:
        """Return the time of a peer in units of the fastest rival's; None if it has no rival."""
        row, rivals = self.row(case), self.rivals(case)
        return row.mean("mean_us") / rivals[0].mean("mean_us") if row and rivals else None

    @property
    def is_close(self) -> bool:
        """Whether OnlineGP has the lowest error, or one comparable with it."""
        behind = self.behind()
        return behind is not None and behind <= CLOSE

    @property
    def is_slow(self) -> bool:
        """Whether OnlineGP takes far longer than a peer of comparable error."""
        slower = self.slower()
        return slower is not None and slower > SLOW

    @property
    def frontier(self) -> list[Row]:
        """The peers that no other beats in both error and time, the fastest first."""
        found: list[Row] = []
        for row in sorted(self.ranked, key=lambda each: each.mean("mean_us")):
            if not found or row.mean("smse") < found[-1].mean("smse"):
                found.append(row)
        return found


def comparison(records: Records, topic: str) -> Comparison:
    """Return all that is recorded of one stream."""
    rows = [Row(case, records.of(PART, topic, case)) for case in PEERS]
    rows = [row for row in rows if row.records]
    order = sorted(
        rows, key=lambda row: (row.failure is not None, 0.0 if row.failure else row.mean("smse"))
    )
    return Comparison(topic, order)


def recorded(records: Records) -> list[Comparison]:
    """Return all streams that are recorded, those at hand everywhere first."""
    there = sorted({record.task.topic for record in records})
    known = [*SIMULATED, *PUBLISHED]
    order = [name for name in known if name in there] + [
        name for name in there if name not in known
    ]
    return [comparison(records, name) for name in order]


def comparisons(records: Records) -> list[Comparison]:
    """Return the streams on which there is something to compare: a peer came to the end."""
    return [found for found in recorded(records) if found.ranked]


@dataclass(frozen=True)
class Overall:
    """One peer over all streams it came to the end of: geometric means."""

    case: str
    error: float
    """In units of the lowest on each stream."""
    microseconds: float


def overall(found: Sequence[Comparison]) -> list[Overall]:
    """Return the peers that came to the end of most streams, the lowest error first.

    Means over few streams, or over those that a peer does not fail on, are no comparison.
    """
    result = []
    for case, peer in PEERS.items():
        rows = [(each, row) for each in found if (row := each.row(case)) is not None]
        if rows and len(rows) >= MOST * len(found) and not peer.variant:
            errors = [row.mean("smse") / each.first.mean("smse") for each, row in rows]
            times = [row.mean("mean_us") for _, row in rows]
            result.append(Overall(case, _geometric(errors), _geometric(times)))
    return sorted(result, key=lambda each: each.error)


@dataclass(frozen=True)
class Outcomes:
    """On how many streams a peer came to the end, failed, or was not run."""

    case: str
    finished: int
    failed: int
    absent: int


def outcomes(found: Sequence[Comparison]) -> list[Outcomes]:
    """Return the outcomes of each peer that was run, but for OnlineGP with other settings."""
    result = []
    for case, peer in PEERS.items():
        rows = [row for each in found for row in each.rows if row.case == case]
        failed = sum(row.failure is not None for row in rows)
        if rows and not peer.variant:
            result.append(Outcomes(case, len(rows) - failed, failed, absent=len(found) - len(rows)))
    return result


def _geometric(values: list[float]) -> float:
    return exp(sum(log(value) for value in values) / len(values))


def by_frequency(records: Records, name: str) -> list[str]:
    """Return what an entry of the environment was, the most frequent first."""
    return [value for value, _ in Counter(each.environment[name] for each in records).most_common()]

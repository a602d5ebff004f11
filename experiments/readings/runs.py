"""What was run: which sets are there, how long it took, on what machine, by which code."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from experiments.published import SETS
from experiments.readings.compare import comparison
from experiments.readings.frontier import frontier
from experiments.records import Records


@dataclass(frozen=True)
class Runs:
    """All records of a report, as runs."""

    records: Records

    @property
    def count(self) -> int:
        """How many runs there are."""
        return len(list(self.records))

    @property
    def hours(self) -> float:
        """Processor time of all runs."""
        return sum(record.seconds for record in self.records) / 3600

    @property
    def small(self) -> bool:
        """Whether this is the small form, whose numbers are not to be held against the paper's."""
        return any("--quick" in record.command for record in self.records)

    @property
    def missing(self) -> list[str]:
        """The paper's sets that have not all been run."""
        return [
            topic
            for topic in SETS
            if comparison(self.records, topic) is None or frontier(self.records, topic) is None
        ]

    def environment(self, name: str) -> list[str]:
        """Return what an entry of the environment was, the most frequent first."""
        return _by_frequency(record.environment[name] for record in self.records)

    @property
    def commands(self) -> list[str]:
        """The commands that made the records, the most frequent first.

        The folder of the records and the number of parallel runs are left out.
        """
        private = re.compile(r" --(records|jobs)[ =]\S+")
        return _by_frequency(private.sub("", record.command) for record in self.records)


def _by_frequency(values: Iterable[str]) -> list[str]:
    return [value for value, _ in Counter(values).most_common()]

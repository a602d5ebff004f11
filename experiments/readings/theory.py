"""The runs beside the theory of which the report speaks, all of POG as published."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.readings.assumption import Assumption, assumptions
from experiments.readings.parsimony import Parsimony, parsimonies
from experiments.readings.stationarity import Stationarity, stationarities
from experiments.records import Records

CASE = "pog-published"
_DENSE, _ABSORBING = ("dense", 0.0, 0.0), ("absorbing", 0.1, 0.0)
_CONSTANT, _DECAYING, _SLOWER = (CASE, 1e-3, 0.0), (CASE, 0.1, 1.0), (CASE, 0.1, 0.5)
_SPOKEN_OF = {_DENSE, _ABSORBING, _CONSTANT, _DECAYING, _SLOWER}


@dataclass(frozen=True)
class Theory:
    """Theorem 1 by model, initial budget and power of its decay; Assumption 1; Theorem 2 by p."""

    steps: dict[tuple[str, float, float], Stationarity]
    assumptions: list[Assumption]
    parsimonies: list[Parsimony]

    @property
    def dense(self) -> Stationarity:
        """The dense GP."""
        return self.steps[_DENSE]

    @property
    def constant(self) -> Stationarity:
        """POG with a constant budget."""
        return self.steps[_CONSTANT]

    @property
    def decaying(self) -> Stationarity:
        """POG with a budget that falls like 1/t."""
        return self.steps[_DECAYING]

    @property
    def slower(self) -> Stationarity:
        """POG with a budget that falls like 1/√t."""
        return self.steps[_SLOWER]

    @property
    def absorbing(self) -> Stationarity:
        """Absorbing POG with a constant budget."""
        return self.steps[_ABSORBING]

    @property
    def excess(self) -> float:
        """The most by which, on any stream, POG's small steps are likelier than the dense GP's."""
        return max(each.excess() for each in self.assumptions)

    def held(self, kind: str = "novelty") -> dict[str, float]:
        """Return the share of steps in which the dense GP's is not longer than POG's, by stream."""
        return {_name(each): each.held(kind) for each in self.assumptions}

    @property
    def exponents(self) -> list[float]:
        """By which power of 1/ε the model order grows, for each number of inputs."""
        return [each.exponent.value for each in self.parsimonies if each.exponent is not None]

    @property
    def growing(self) -> list[int]:
        """The numbers of inputs for which some order had not settled."""
        return [each.inputs for each in self.parsimonies if each.unsettled]


def theory(records: Records) -> Theory | None:
    """Return what the runs say; None where they have not all been made."""
    steps = {(each.case, each.initial, each.power): each for each in stationarities(records)}
    assumed = [each for each in assumptions(records) if each.case == CASE]
    sizes = [each for each in parsimonies(records) if each.case == CASE]
    complete = steps.keys() >= _SPOKEN_OF and assumed and sizes
    return Theory(steps, assumed, sizes) if complete else None


def _name(assumption: Assumption) -> str:
    """Return what a stream is called: a set by its name, a simulated one by its inputs."""
    return assumption.name if assumption.name.endswith(("input", "inputs")) else assumption.topic

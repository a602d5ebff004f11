"""What the paper says: its settings and the figures it prints, to stand beside ours."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Printed:
    """A row of the paper's Tables 2 and 3; its MSLL includes ½ log 2π, as our NLPD does."""

    smse: float
    msll: float
    epoch: float
    """Seconds of a full training epoch."""
    seconds: float | None = None
    """Seconds of one update."""


@dataclass(frozen=True)
class Setting:
    """How the paper ran a data set, and what it printed for each method."""

    tune: int
    budget: float
    size: int
    """Of POG in the end, and of what it is compared with."""
    streamed: int
    """Samples after the first slice: the dense GP's model order."""
    printed: dict[str, Printed]


SETS = {
    "boston": Setting(
        tune=50,
        budget=4.9e-5,
        size=83,
        streamed=405,
        printed={
            "dense": Printed(0.0989, 0.3364, 97.48, 0.2407),
            "spgp": Printed(0.0833, 0.1691, 6.72),
            "pog-published": Printed(0.2590, 0.6323, 54.89, 0.1355),
            "sogp": Printed(0.4629, 2.4241, 12.06, 0.0298),
        },
    ),
    "abalone": Setting(
        tune=150,
        budget=1e-5,
        size=394,
        streamed=2983,
        printed={
            "dense": Printed(0.4078, 2.1529, 393730, 131.99),
            "spgp": Printed(0.3865, 2.0083, 94.32),
            "pog-published": Printed(0.4324, 2.2032, 15289, 5.1254),
            "sogp": Printed(0.4839, 357.47, 412.57, 0.1383),
        },
    ),
    "kin40": Setting(
        tune=300,
        budget=1e-5,
        size=392,
        streamed=3700,
        printed={
            "dense": Printed(0.0686, 0.0694, 224640, 60.71),
            "spgp": Printed(0.1388, 0.4104, 104.96),
            "pog-published": Printed(0.1943, 0.5620, 6420.9, 1.7354),
            "sogp": Printed(0.8131, 30.565, 391.34, 0.1058),
        },
    ),
}

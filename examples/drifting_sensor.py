"""A sensor that drifts, and an alarm that goes by surprise.

A thermometer is read every ten minutes for some months. Its readings follow the hour of the day,
the level drifts, and now and then something breaks: a bias, a stuck value, a burst of noise. The
model forgets (`forgetting`), so that it follows the drift, and its variances are kept honest by
their own residuals (`calibrate`). Then z = (reading − mean)/deviation, as predicted before learning,
is about N(0, 1) while nothing is wrong, whatever the drift, and one threshold fits all sensors.

Small errors that persist matter as much as large ones, so the alarm adds up z (CUSUM): upwards,
downwards, and for readings that are too lively z² − 1. While it lasts the model does not learn, or
it would get used to the fault. It ends when readings are as expected again, or after two days: then
that is how things are now. The same without forgetting shows what the drift would have done.

    python examples/drifting_sensor.py --figure sensor.png
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small matrices: threads only get in the way

import argparse
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import pogp

Array = NDArray[np.float64]
DAY = 144
"""Readings a day, one every ten minutes."""
NOISE = 0.3
"""The standard deviation of a reading, in degrees."""
LEARNING = 5 * DAY
"""Readings before the alarm is switched on."""
ALLOWANCE, THRESHOLD = 1.0, 6.0
"""What is taken off each z before it is added up, and the sum that rings."""
CALM, PATIENCE = 12, 2 * DAY
"""Readings in a row that end an alarm, and readings after which it ends anyway."""


@dataclass(frozen=True)
class Fault:
    """Something that is wrong with the readings for a day."""

    kind: str
    start: int

    def apply(self, readings: Array, rng: np.random.Generator) -> None:
        """Spoil a day of readings, in place."""
        day = readings[self.start : self.start + DAY]
        match self.kind:
            case "bias":
                day += 3 * NOISE
            case "stuck":
                day[:] = day[0]
            case "noise":
                day += 3 * NOISE * rng.normal(size=len(day))


def stream(days: int, seed: int) -> tuple[Array, Array, list[Fault]]:
    """Return the place of each reading on the clock's face (n, 2), the readings, and the faults."""
    rng = np.random.default_rng(seed)
    t = np.arange(days * DAY) / DAY
    hour = 2 * np.pi * t
    cycle = 15 + 5 * np.sin(hour) + 1.5 * np.cos(2 * hour + 1)
    drift = 0.08 * t + np.cumsum(rng.normal(size=len(t))) * 0.3 / np.sqrt(DAY)
    readings = cycle + drift + NOISE * rng.normal(size=len(t))
    starts = np.arange(15, days - 2, 10) * DAY + rng.integers(0, DAY, len(range(15, days - 2, 10)))
    kinds = ["bias", "stuck", "noise"]
    faults = [Fault(kinds[i % 3], int(start)) for i, start in enumerate(starts)]
    for fault in faults:
        fault.apply(readings, rng)
    return np.column_stack([np.cos(hour), np.sin(hour)]), readings, faults


@dataclass
class Alarm:
    """Rings when what is unexpected adds up."""

    sums: Array = field(default_factory=lambda: np.zeros(3))
    calm: int = 0
    lasted: int = 0

    def hears(self, z: float) -> bool:
        """Take note of one reading; return whether the alarm rings."""
        z = float(np.clip(z, -6, 6))  # one wild reading is not a fault yet
        steps = np.array([z, -z, (abs(z) - 0.8) / 0.6]) - ALLOWANCE
        if self.lasted == 0:
            self.sums = np.maximum(self.sums + steps, 0.0)
            self.lasted = int(self.sums.max() > THRESHOLD)
            return self.lasted > 0
        self.lasted += 1
        self.calm = self.calm + 1 if abs(z) < 2 else 0
        if self.calm == CALM or self.lasted > PATIENCE:
            self.sums, self.calm, self.lasted = np.zeros(3), 0, 0
        return self.lasted > 0


def watch(X: Array, y: Array, forgetting: float, points: int, seed: int) -> tuple[Array, Array, Array]:
    """Return mean and deviation predicted for each reading, and whether the alarm rang at it."""
    start = slice(0, 2 * DAY)
    tuned = pogp.tune(X[start], y[start], mean=float(y[start].mean()), restarts=1, seed=seed)
    model = pogp.AbsorbingPOG(
        tuned.kernel,
        tuned.noise,
        budget=None,
        max_size=points,
        forgetting=forgetting,
        calibrate=True,
        mean=float(y[start].mean()),
    )
    alarm, ringing = Alarm(), False
    means, deviations, rang = np.empty(len(y)), np.empty(len(y)), np.zeros(len(y), dtype=bool)
    for i, (x, reading) in enumerate(zip(X, y, strict=True)):
        mean, variance = model.predict(x)
        means[i], deviations[i] = mean, np.sqrt(variance)
        if i >= LEARNING:
            if not alarm.sums.any():
                before = model.copy()
            started = not ringing
            ringing = alarm.hears((reading - mean) / deviations[i])
            if ringing and started: model = before
        if not ringing:
            model.learn(x, reading)
        rang[i] = ringing
    return means, deviations, rang

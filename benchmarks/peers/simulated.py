"""Three streams that are at hand everywhere, in raw units, each with something that changes."""

import numpy as np

from benchmarks.streams import shoulder_torque
from benchmarks.workloads import Stream
from pogp.arrays import Array

RATE = 20.0
"""Samples of the arm per second."""
DAY = 144
"""Readings of the sensor in a day."""


def arm(samples: int, seed: int = 0) -> Stream:
    """Return the torque of an arm that is still, then moves, then takes up a payload.

    Inputs are the angles, speeds and accelerations of two joints. For a sixth of the stream the arm
    only trembles; then it moves along a path that does not repeat; from two thirds on its hand
    holds 1.5 kg more.
    """
    rng = np.random.default_rng(seed)
    along = np.arange(samples) / samples
    moving = np.clip((along - 1 / 6) * 20, 0.01, 1.0)  # a fiftieth of the stream to set off
    rates, phases = rng.uniform(0.3, 2.5, (4, 1, 2)), rng.uniform(0, 2 * np.pi, (4, 1, 2))
    time = np.arange(samples)[:, None] / RATE
    q = moving[:, None] * 0.5 * np.sin(rates * time + phases).sum(axis=0)
    v = np.gradient(q, 1 / RATE, axis=0)
    a = np.gradient(v, 1 / RATE, axis=0)
    load = np.where(along < 2 / 3, 0.0, 1.5)
    friction = 0.6 * v[:, 0] + np.tanh(5 * v[:, 0])
    torque = shoulder_torque(q, v, a, load) + friction
    return Stream(np.hstack([q, v, a]), torque + 0.2 * rng.normal(size=samples))


def drifting_sensor(samples: int, seed: int = 0) -> Stream:
    """Return the readings of a gas sensor that ages, every ten minutes.

    Inputs are the concentration, the temperature and the humidity. The response saturates, depends
    on the temperature, loses a third of its gain along the stream, and its zero is a random walk.
    """
    rng = np.random.default_rng(seed)
    day = 2 * np.pi * np.arange(samples) / DAY
    concentration = np.exp(0.8 * _walk(rng, samples, 0.99) + 1.0)
    temperature = 18 + 6 * np.sin(day) + 3 * _walk(rng, samples, 0.995)
    humidity = 55 - 8 * np.sin(day + 0.4) + 6 * _walk(rng, samples, 0.995)
    gain = 1 - np.arange(samples) / (3 * samples)
    response = 40 * concentration / (3 + concentration) * (1 + 0.02 * (temperature - 18))
    zero = 0.05 * np.cumsum(rng.normal(size=samples)) + 0.05 * (humidity - 55)
    X = np.column_stack([concentration, temperature, humidity])
    return Stream(X, 100 + gain * response + zero + 0.5 * rng.normal(size=samples))


def seasonal_demand(samples: int, seed: int = 0) -> Stream:
    """Return the hourly demand for electricity of a town.

    Inputs are the hours since the start, the hour of the day, the day of the week and the
    temperature. Demand has a shape over the day that is another one at weekends, rises with cold,
    grows by a tenth in a year, is low on some days off, and carries over from hour to hour.
    """
    rng = np.random.default_rng(seed)
    hours = np.arange(samples, dtype=np.float64)
    hour, weekday = hours % 24, hours // 24 % 7
    free = (weekday >= 5) | np.isin(hours // 24, rng.permutation(samples // 24 + 1)[::20])
    morning, evening = _hump(hour, 8, 2.0), _hump(hour, 19, 2.5)
    shape = np.where(free, 0.4 * _hump(hour, 11, 4.0) + 0.8 * evening, morning + evening)
    year = 2 * np.pi * hours / 8766
    daily = 5 * np.sin(2 * np.pi * (hour - 9) / 24)
    temperature = 10 - 10 * np.cos(year) + daily + 4 * _walk(rng, samples, 0.99)
    cold = np.logaddexp(0, (15 - temperature) / 2) * 2
    demand = (400 + 120 * shape + 6 * cold) * (1 + 0.1 * hours / 8766)
    X = np.column_stack([hours, hour, weekday, temperature])
    return Stream(X, demand + 10 * _walk(rng, samples, 0.8) + 4 * rng.normal(size=samples))


def _walk(rng: np.random.Generator, samples: int, memory: float) -> Array:
    """Return an autoregression with variance one."""
    steps = rng.normal(size=samples) * np.sqrt(1 - memory**2)
    value = rng.normal()
    values = np.empty(samples)
    for i, step in enumerate(steps):
        value = memory * value + step
        values[i] = value
    return values


def _hump(hour: Array, centre: float, width: float) -> Array:
    """Return a bell over the day, of height one."""
    return np.asarray(np.exp(-0.5 * ((hour - centre) / width) ** 2))

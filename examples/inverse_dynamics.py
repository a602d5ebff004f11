"""A robot arm learns the torques that its model does not know, in the control loop, on time.

A two-link arm in the vertical plane follows a path by computed torque: its controller knows the
rigid body, but neither the load in the hand nor the friction in the joints. What it gets wrong is
learned from the motion itself, one sample per control step, and added to the next torque. Two
outputs share one model: `learn(x, y)` with x = (angles, velocities, accelerations).

In a loop the time of every step counts, not the average. The kernel is tuned beforehand on a short
run; from then on each prediction and each update is timed against the deadline, and what came late
is reported, whatever it was. (On a machine that does other things, some will be.)

    python examples/inverse_dynamics.py --figure arm.png
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small matrices: threads only get in the way

import argparse
import gc
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

import pogp

Array = NDArray[np.float64]
STEP = 1e-3
"""Seconds between two torques: the loop runs at 1 kHz."""
STIFFNESS, DAMPING = 400.0, 40.0
"""Of the feedback, as accelerations per unit of error: soft, so that the model matters."""
SENSOR = 0.05
"""The standard deviation of a measured acceleration, rad/s²."""


@dataclass(frozen=True)
class Arm:
    """Two links in the vertical plane: lengths 0.5 and 0.4 m, masses 4 and 3 kg."""

    load: float = 0.0
    viscous: float = 0.0
    dry: float = 0.0

    def torque(self, q: Array, v: Array, a: Array) -> Array:
        """The torques that give the accelerations a at angles q and velocities v."""
        return self._inertia(q) @ a + self._bias(q, v)

    def acceleration(self, q: Array, v: Array, torque: Array) -> Array:
        return np.linalg.solve(self._inertia(q), torque - self._bias(q, v))

    def _inertia(self, q: Array) -> Array:
        own, cross, lower = self._moments()
        coupling = cross * np.cos(q[1])
        return np.array([[own + 2 * coupling, lower + coupling], [lower + coupling, lower]])

    def _bias(self, q: Array, v: Array) -> Array:
        """Coriolis and centrifugal torques, gravity, and friction."""
        _, cross, _ = self._moments()
        turning = cross * np.sin(q[1]) * np.array([-v[1] * (2 * v[0] + v[1]), v[0] ** 2])
        far = 9.81 * (3 * 0.2 + self.load * 0.4) * np.cos(q[0] + q[1])
        near = 9.81 * (4 * 0.25 + (3 + self.load) * 0.5) * np.cos(q[0])
        friction = self.viscous * v + self.dry * np.tanh(v / 0.2)
        return np.asarray(turning + np.array([near + far, far]) + friction)

    def _moments(self) -> tuple[float, float, float]:
        lower = 3 * 0.2**2 + self.load * 0.4**2 + 0.04
        cross = 0.5 * (3 * 0.2 + self.load * 0.4)
        return 4 * 0.25**2 + (3 + self.load) * 0.5**2 + 0.08 + lower, cross, lower


REAL, NOMINAL = Arm(load=0.6, viscous=1.0, dry=2.0), Arm()


def path(t: float) -> tuple[Array, Array, Array]:
    """Where the arm should be at time t, how fast, and how hastily: two waves on each joint."""
    size = np.array([[0.7, 0.25], [0.6, 0.3]])
    pace = 2 * np.pi * np.array([[0.31, 0.83], [0.47, 1.1]])
    angle = pace * t + np.array([[0.0, 1.0], [2.0, 0.5]])
    q = np.array([0.5, 0.8]) + (size * np.sin(angle)).sum(axis=1)
    v, a = (size * pace * np.cos(angle)).sum(axis=1), -(size * pace**2 * np.sin(angle)).sum(axis=1)
    return q, v, a


@dataclass
class Run:
    """What happened at each step."""

    errors: list[Array] = field(default_factory=list)
    inputs: list[Array] = field(default_factory=list)
    missing: list[Array] = field(default_factory=list)
    times: list[float] = field(default_factory=list)

    def rms(self, start: int = 0) -> float:
        return 1e3 * float(np.sqrt(np.mean(np.array(self.errors[start:]) ** 2)))


Predict = Callable[[Array], Array]
Learn = Callable[[Array, Array], None]


def follow(steps: int, seed: int, predict: Predict, learn: Learn) -> Run:
    """Follow the path; `predict` corrects the torque, `learn` is told what was missing from it."""
    rng, run = np.random.default_rng(seed), Run()
    q, v, _ = path(0.0)
    for i in range(steps):
        wanted, pace, haste = path(i * STEP)
        a = haste + STIFFNESS * (wanted - q) + DAMPING * (pace - v)
        started = perf_counter()
        x = np.concatenate([q, v])
        correction = predict(x)
        thought = perf_counter() - started
        torque = NOMINAL.torque(q, v, a) + correction
        real = REAL.acceleration(q, v, torque)
        measured = real + SENSOR * rng.normal(size=2)
        y = torque - NOMINAL.torque(q, v, measured)
        started = perf_counter()
        learn(x, y)
        run.times.append(thought + perf_counter() - started)
        run.errors.append(wanted - q)
        run.inputs.append(x)
        run.missing.append(y)
        v = v + STEP * real
        q = q + STEP * v
    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seconds", type=float, default=10.0, help="to follow the path for")
    parser.add_argument("--points", type=int, default=100, help="that the model may keep")
    parser.add_argument("--deadline", type=float, default=1.0, help="ms to predict and learn")
    parser.add_argument("--seed", type=int, default=0, help="of the sensors")
    parser.add_argument("--figure", type=Path, help="write a picture to this file")
    options = parser.parse_args()
    steps = round(options.seconds / STEP)

    plain = follow(steps, options.seed, lambda x: np.zeros(2), lambda x, y: None)
    rows = slice(0, min(steps, 4000), 10)  # what the first seconds without learning have shown
    X, Y = np.array(plain.inputs)[rows], np.array(plain.missing)[rows]
    unit = Y.std(axis=0)
    tuned = pogp.tune(X, Y / unit, mean=Y.mean(axis=0) / unit, restarts=1, seed=options.seed)
    prior = Y.mean(axis=0) / unit
    model = pogp.AbsorbingPOG(tuned.kernel, tuned.noise, None, max_size=options.points, mean=prior)
    model.learn(X, Y / unit)

    gc.collect()
    gc.freeze()  # what is there stays; the collector need not look at it in the loop
    run = follow(
        steps,
        options.seed + 1,
        lambda x: model.predict(x)[0] * unit,
        lambda x, y: model.learn(x, y / unit) and None,
    )
    times = 1e6 * np.array(run.times)
    late = int(np.sum(times > 1e3 * options.deadline))
    print(f"{steps} steps at {1 / STEP:.0f} Hz; {model.size} points, {model.nbytes / 2**20:.1f} MiB")
    print("tracking error, rms:")
    print(f"  without learning  {plain.rms():8.3f} mrad")
    print(f"  with learning     {run.rms():8.3f} mrad, {run.rms(steps // 2):.3f} in the second half")
    half, most, nearly, worst = np.percentile(times, [50, 99, 99.9, 100])
    print(f"time to predict and learn, µs: median {half:.0f}, 99% {most:.0f}, 99.9% {nearly:.0f}, worst {worst:.0f}")
    print(f"deadline of {options.deadline:g} ms missed {late} times in {steps}: {late / steps:.3%}")
    if options.figure:
        draw(options.figure, plain, run, options.deadline)


def draw(target: Path, plain: Run, run: Run, deadline: float) -> None:
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    from pogp.report.style import FIGURE, GREY, METHODS


if __name__ == "__main__":
    main()

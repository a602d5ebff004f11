"""Learn the inverse dynamics of a robot arm in its control loop, with a deadline for each step.

A two-link arm follows a path repeatedly by computed torque. The controller knows the rigid body,
but not the load in the hand or the friction in the joints. Half way through, the load becomes
heavier. The model learns the missing torque from the motion, one sample per control step, and adds
its prediction to the next torque. It has two outputs, and its inputs are angles and velocities.

The acceleration is filtered and known 20 ms later. A disturbance observer, which adds the last
missing torque, is therefore always 20 ms late. The model is not, because it has learned the torque
at this place before.

In a control loop the slowest step counts, not the average. The kernel is tuned beforehand on a
short run. Each prediction and each update is then timed against a deadline, by the clock and by the
processor time. Steps that are late only by the clock were delayed by other programs.

    python examples/inverse_dynamics.py --figure dynamics.png
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # threads slow down small products

import argparse
import gc
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, thread_time

import numpy as np
from numpy.typing import NDArray

import pogp

Array = NDArray[np.float64]
STEP, DELAY = 1e-3, 20
"""Seconds between two torques, and the steps after which it is known what one of them did."""
STIFFNESS, DAMPING = 400.0, 40.0
"""Of the feedback, in rad/s² per rad and per rad/s."""
SENSOR = 0.2
"""The standard deviation of a measured acceleration, in rad/s²."""


@dataclass(frozen=True)
class Arm:
    """Two links of 0.5 and 0.4 m and of 4 and 3 kg, a load in the hand, friction in the joints."""

    load: float = 0.0
    friction: float = 0.0

    def torque(self, q: Array, v: Array, a: Array) -> Array:
        """Return the torques that give the accelerations a at angles q and velocities v."""
        return self._inertia(q) @ a + self._bias(q, v)

    def acceleration(self, q: Array, v: Array, torque: Array) -> Array:
        """Return what the torques do."""
        return np.linalg.solve(self._inertia(q), torque - self._bias(q, v)).astype(np.float64)

    def _inertia(self, q: Array) -> Array:
        far = 3 * 0.2**2 + 0.04 + self.load * 0.4**2
        near = 4 * 0.25**2 + 0.08 + (3 + self.load) * 0.5**2 + far
        bent = self._coupling * np.cos(q[1])
        return np.array([[near + 2 * bent, far + bent], [far + bent, far]])

    def _bias(self, q: Array, v: Array) -> Array:
        """Return centrifugal and Coriolis torques, gravity, and friction."""
        turning = np.array([-v[1] * (2 * v[0] + v[1]), v[0] ** 2]) * self._coupling * np.sin(q[1])
        far = 9.81 * (3 * 0.2 + self.load * 0.4) * np.cos(q[0] + q[1])
        near = 9.81 * (4 * 0.25 + (3 + self.load) * 0.5) * np.cos(q[0])
        torque: Array = turning + np.array([near + far, far])
        return torque + self.friction * (0.5 * v + np.tanh(5 * v))

    @property
    def _coupling(self) -> float:
        return 0.5 * (3 * 0.2 + self.load * 0.4)


NOMINAL, FIRST, THEN = Arm(), Arm(load=0.6, friction=2.0), Arm(load=1.0, friction=2.0)


def path(t: float) -> tuple[Array, Array, Array]:
    """Return angles, velocities and accelerations at time t, which come back every 4 seconds."""
    size = np.array([[0.7, 0.25], [0.6, 0.3]])
    pace = 2 * np.pi * np.array([[0.25, 0.75], [0.5, 1.0]])
    angle = pace * t + np.array([[0.0, 1.0], [2.0, 0.5]])
    q, v, a = size * np.sin(angle), size * pace * np.cos(angle), -size * pace**2 * np.sin(angle)
    return np.array([0.5, 0.8]) + q.sum(axis=1), v.sum(axis=1), a.sum(axis=1)


@dataclass(frozen=True)
class Run:
    """By step: errors (mrad), inputs, what the torques lacked; ms passed, and of the processor."""

    errors: Array
    inputs: Array
    lacking: Array
    times: Array


def follow(
    steps: int, seed: int, add: Callable[[Array], Array], learn: Callable[[Array, Array], object]
) -> Run:
    """Follow the path; `add` corrects a torque, and `learn` gets the torque that was missing."""
    rng, known = np.random.default_rng(seed), deque[tuple[Array, Array]]()
    run = Run(*(np.empty((steps, width)) for width in (2, 4, 2, 2)))
    q, v, _ = path(0.0)
    for i in range(steps):
        arm = FIRST if i < steps // 2 else THEN
        goal, pace, haste = path(i * STEP)
        x, a = np.concatenate([q, v]), haste + STIFFNESS * (goal - q) + DAMPING * (pace - v)
        started = perf_counter(), thread_time()
        added = add(x)
        if len(known) == DELAY:
            learn(*known.popleft())
        run.times[i] = 1e3 * (perf_counter() - started[0]), 1e3 * (thread_time() - started[1])
        torque = NOMINAL.torque(q, v, a) + added
        real = arm.acceleration(q, v, torque)
        lacking = torque - NOMINAL.torque(q, v, real + SENSOR * rng.normal(size=2))
        known.append((x, lacking))
        run.errors[i], run.inputs[i], run.lacking[i] = 1e3 * (goal - q), x, lacking
        v = v + STEP * real
        q = q + STEP * v
    return run


def learned(steps: int, seed: int, plain: Run, points: int, forgetting: float) -> Run:
    """Follow the path with a model, which was tuned and begun on 4 seconds without one."""
    first = slice(0, round(4 / STEP), 10)
    X, unit = plain.inputs[first], plain.lacking[first].std(axis=0)
    Y = plain.lacking[first] / unit
    mean = Y.mean(axis=0)
    tuned = pogp.tune(X, Y, mean=mean, restarts=1, seed=seed)
    options = {"max_size": points, "forgetting": forgetting, "mean": mean}
    model = pogp.AbsorbingPOG(tuned.kernel, tuned.noise, None, **options)
    model.learn(X, Y)
    gc.collect()
    gc.freeze()  # so that the collector of garbage has little to look at during the loop
    add, learn = lambda x: model.predict(x)[0] * unit, lambda x, y: model.learn(x, y / unit)
    return follow(steps, seed, add, learn)


def main() -> None:
    """Follow the path in three ways and compare."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=16.0, help="of motion")
    parser.add_argument("--points", type=int, default=100, help="that the model keeps at most")
    parser.add_argument("--forgetting", type=float, default=0.9998, help="per step, 1 for never")
    parser.add_argument("--deadline", type=float, default=1.0, help="in ms, to predict and learn")
    parser.add_argument("--seed", type=int, default=0, help="of the noise of the sensors")
    parser.add_argument("--figure", type=Path, help="where to write a picture")
    options = parser.parse_args()
    steps, seed = round(options.seconds / STEP), options.seed
    last = deque([np.zeros(2)], maxlen=1)
    plain = follow(steps, seed, lambda x: np.zeros(2), lambda x, y: None)
    late = follow(steps, seed, lambda x: last[0], lambda x, y: last.append(y))
    taught = learned(steps, seed, plain, options.points, options.forgetting)
    runs = {"nothing added": plain, "what was lacking last": late, "what was learned": taught}
    print(f"{steps} steps at {1 / STEP:.0f} Hz; tracking error, rms in mrad:")
    print(f"{'':24}{'first load':>12}{'heavier load':>14}")
    for name, run in runs.items():
        halves = [np.sqrt(np.mean(half**2)) for half in np.array_split(run.errors, 2)]
        print(f"{name:24}{halves[0]:12.2f}{halves[1]:14.2f}")
    print(f"{options.points} points; time to predict and learn, in ms:")
    print(f"{'':16}{'median':>8}{'99%':>8}{'99.9%':>8}{'worst':>8}  > {options.deadline:g} ms")
    for name, times in zip(("on the clock", "of processor"), taught.times.T, strict=True):
        levels = "".join(f"{level:8.3f}" for level in np.percentile(times, [50, 99, 99.9, 100]))
        print(f"{name:16}{levels}  {np.sum(times > options.deadline)} of {steps} steps")
    if options.figure:
        draw(options.figure, runs, options.deadline)


def draw(target: Path, runs: dict[str, Run], deadline: float) -> None:
    """Draw the tracking errors, and the time that each step took."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    from pogp.report.style import BLUE, FIGURE, GREY, VERMILLION

    times = runs["what was learned"].times.T
    seconds = STEP * np.arange(times.shape[1])
    with rc_context(FIGURE):
        figure = Figure(figsize=(7.2, 5.0), layout="constrained")
        top, bottom = figure.subplots(2, 1, sharex=True)
        for (name, run), colour in zip(runs.items(), (GREY, BLUE, VERMILLION), strict=True):
            size = np.linalg.norm(run.errors, axis=1)
            smooth = np.convolve(size, np.full(100, 0.01), mode="valid")
            top.semilogy(seconds[99:], smooth, color=colour, label=name)
        top.set(title="Tracking error, mean of 0.1 s; half way the load changes", ylabel="mrad")
        top.legend(ncols=3)
        bottom.semilogy(seconds, times[0], ".", ms=1.5, color=GREY, label="on the clock")
        bottom.semilogy(seconds, times[1], ".", ms=1.5, color=BLUE, label="of processor")
        bottom.axhline(deadline, color=VERMILLION, label="deadline")
        bottom.set(title="Time to predict and learn", xlabel="seconds", ylabel="ms")
        bottom.legend(ncols=3, markerscale=5)
        figure.savefig(target)


if __name__ == "__main__":
    main()

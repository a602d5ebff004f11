"""Ctrl-C and samples that cannot be learned leave a model as it was before or as it is after."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import pogp

from ..conftest import assert_same_state, smooth_2d

KERNEL, NOISE = pogp.RBF(0.4), 0.01
X, Y = smooth_2d(1200)


def test_others_run_while_a_long_batch_is_learned():
    model = pogp.AbsorbingPOG(KERNEL, 1e-4, None, max_size=150, share=0.0)
    inputs, targets = smooth_2d(6000, seed=3)
    done, ticks = threading.Event(), []

    def learn():
        model.learn(inputs, targets)
        done.set()

    def tick():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    started = time.perf_counter()
    threads = [threading.Thread(target=task) for task in (learn, tick)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - started
    assert len(ticks) > took / 0.05  # on a busy machine: every 50 ms at the least, on average


# ---- interrupts

INTERRUPTED = """
import os, pickle, random, signal, sys, threading, time
import numpy as np, pogp

moments, seed = int(sys.argv[1]), int(sys.argv[2])
rng, dice = np.random.default_rng(seed), random.Random(seed)
X = rng.uniform(-1, 1, (1500, 2))
Y = np.sin(3 * X).sum(axis=1) + 0.1 * rng.normal(size=1500)
model = pogp.AbsorbingPOG(pogp.RBF(0.3), 0.01, None, max_size=40, calibrate=True)
model.learn(X[:500], Y[:500])
kept = pickle.dumps(model)

def same(one, other):
    one, other = one.state(), other.state()
    return one.keys() == other.keys() and all(np.array_equal(one[k], other[k]) for k in one)

before, took = pickle.loads(kept), np.inf
for _ in range(3):  # the first time is longer, and a busy machine makes any of them so
    after, started = pickle.loads(kept), time.perf_counter()
    after.learn(X[500:], Y[500:])
    took = min(took, time.perf_counter() - started)
outcomes = [0, 0]
for moment in range(10 * moments):  # on a busy machine many signals come too late
    if moment >= moments and outcomes[0] > moments / 4:
        break
    model = pickle.loads(kept)
    share = (moment % moments + dice.random()) / moments
    delay = (1.2 if share < 0.9 else 8.0) * took * share  # the last ones surely come too late
    timer = threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        started = time.perf_counter()
        model.learn(X[500:], Y[500:])
        took = min(took, time.perf_counter() - started)  # the machine may have been busy before
        timer.join()
        time.sleep(0.001)
    except KeyboardInterrupt:
        pass
    timer.join()
    try:
        time.sleep(0.002)
    except KeyboardInterrupt:
        pass
    states = same(model, before), same(model, after)
    assert any(states), (moment, model.seen)
    outcomes[states[1]] += 1
print(*outcomes)
"""


def interrupted(moments, seed):
    command = [sys.executable, "-c", INTERRUPTED, str(moments), str(seed)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=600, env=os.environ)
    assert run.returncode == 0, run.stderr
    before, after = map(int, run.stdout.split())
    assert before + after >= moments
    assert before > moments / 4
    return before, after


@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX's")
def test_ctrl_c_leaves_a_state_from_before_or_after_the_batch():
    assert min(interrupted(200, 0)) > 0


def test_a_signal_handler_of_the_user_is_kept():
    caught = []
    previous = signal.signal(signal.SIGINT, lambda *arguments: caught.append(arguments))
    try:
        handler = signal.getsignal(signal.SIGINT)
        model = pogp.AbsorbingPOG(KERNEL, NOISE, None, max_size=60, forgetting=0.99)
        model.learn(X[:300], Y[:300])
        assert signal.getsignal(signal.SIGINT) is handler
        os.kill(os.getpid(), signal.SIGINT)
        assert len(caught) == 1
    finally:
        signal.signal(signal.SIGINT, previous)


# ---- what cannot be learned


@pytest.mark.parametrize(
    ("backend", "rows", "position"),
    [("compiled", *case) for case in ((1, 0), (50, 0), (50, 3), (100, 0), (100, 3), (100, 70))]
    + [("reference", 1, 0), ("reference", 50, 3)],  # which has no blocks
    indirect=["backend"],
)
def test_a_sample_that_cannot_be_learned_changes_nothing(backend, monkeypatch, rows, position):
    """Targets are checked: only what is beyond any data can overflow."""
    monkeypatch.setattr("pogp.validation._require_moderate", lambda *arguments: None)
    model = pogp.AbsorbingPOG(KERNEL, NOISE, None, max_size=30, calibrate=True)
    model.learn(X[:40], Y[:40])
    before, twin, targets = model.state(), model.copy(), Y[40:140].copy()
    targets[position] = 1e308
    with pytest.raises(FloatingPointError, match=f"sample {40 + position} of the stream"):
        model.learn(X[40 : 40 + rows], targets[:rows])
    assert_same_state(model, before)
    for one in (model, twin):
        one.learn(X[40:140], Y[40:140])
    assert model.seen == 140
    assert_same_state(model, twin)

"""Models that several threads use at once."""

import os
import pickle
import signal
import time
from collections.abc import Callable
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest

import pogp
from pogp.arrays import Array
from pogp.interrupts import Uninterrupted
from pogp.models import absorbing
from pogp.models.retuning import Retuned
from pogp.posteriors.retained import posterior as retained
from pogp.tuning import Tuned

from ..conftest import assert_same_state

QUERIES = np.random.default_rng(9).uniform(-2, 2, (40, 2))
SAMPLES, BATCH = 480, 120

MAKERS: dict[str, Callable[[], Any]] = {
    "pog": lambda: pogp.POG(pogp.RBF(0.7), 0.01, None, max_size=40),
    "pog-trend": lambda: pogp.POG(pogp.RBF(0.7) + pogp.Linear(), 0.1, 1e-3, max_size=40),
    "dense": lambda: pogp.DenseGP(pogp.RBF(0.7), 0.01),
    "window": lambda: pogp.SlidingWindow(pogp.RBF(0.7), 0.01, 50),
    "random": lambda: pogp.RandomSubset(pogp.RBF(0.7), 0.01, 50),
    "streaming": lambda: pogp.StreamingVFE(pogp.RBF(0.7), 0.01, 20, batch=60),
    "absorbing": lambda: pogp.AbsorbingPOG(pogp.RBF(0.7), 0.01, None, max_size=30, calibrate=True),
    "self-tuning": lambda: pogp.SelfTuning("pog", warmup=40, budget=None, max_size=40),
    "self-tuning-scaled": lambda: pogp.SelfTuning(warmup=150, max_size=30, scale=True),
}
makers = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())


def data(n: int = SAMPLES) -> tuple[Array, Array]:
    X = np.random.default_rng(1).uniform(-2, 2, (n, 2))
    return X, np.sin(2 * X[:, 0]) * X[:, 1] + 0.1 * np.random.default_rng(2).normal(size=n)


def in_threads(*jobs: Callable[[], object]) -> list[BaseException]:
    """Run jobs at once; return what went wrong."""
    wrong: list[BaseException] = []

    def run(job: Callable[[], object]) -> None:
        try:
            job()
        except BaseException as error:
            wrong.append(error)

    threads = [Thread(target=run, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "threads wait for each other"
    return wrong


def consistent_states(make: Callable[[], Any]) -> set[bytes]:
    """Return what a model predicts after every batch, and after the first block of each."""
    X, y = data()
    model, found = make(), set()
    found.add(answer(model))
    for start in range(0, SAMPLES, BATCH):
        at = model.copy()
        for stop in (retained.BLOCK, BATCH):
            one = at.copy()
            one.learn(X[start : start + stop], y[start : start + stop])
            found.add(answer(one))
        model.learn(X[start : start + BATCH], y[start : start + BATCH])
        found.add(answer(model))
    return found


def answer(model: Any) -> bytes:
    mean, variance = model.predict(QUERIES)
    assert np.isfinite(mean).all()
    assert (variance > 0).all()
    return bytes(mean.tobytes() + variance.tobytes())


@makers
def test_predictions_while_another_thread_learns_are_of_one_state(make: Callable[[], Any]) -> None:
    states = consistent_states(make)
    X, y = data()
    model, started, done = make(), Event(), Event()
    seen: list[bytes] = []

    def learn() -> None:
        started.wait()
        try:
            for start in range(0, SAMPLES, BATCH):
                model.learn(X[start : start + BATCH], y[start : start + BATCH])
        finally:
            done.set()

    def ask() -> None:
        while True:
            seen.append(answer(model))
            started.set()
            if done.is_set():
                break

    def look() -> None:
        while not done.is_set():
            covariance = model.covariance(QUERIES[:5])
            assert np.isfinite(covariance).all()
            assert np.isfinite(model.sample(QUERIES[:5], 2, seed=0)).all()
            assert len(model.indices) <= SAMPLES
            assert model.dictionary.shape[1] in (0, 2)
            assert np.isfinite(model.dictionary).all()
            copied = model.copy()
            assert copied.seen % BATCH == 0
            assert pickle.loads(pickle.dumps(model)).seen % BATCH == 0
            assert pogp.from_bytes(model.to_bytes()).seen % BATCH == 0
            assert answer(copied) in states

    assert in_threads(learn, ask, ask, ask, look) == []
    assert set(seen) <= states
    whole = make()
    for start in range(0, SAMPLES, BATCH):
        whole.learn(X[start : start + BATCH], y[start : start + BATCH])
    assert_same_state(model, whole)


@pytest.mark.parametrize("name", ["pog", "dense", "absorbing"])
def test_predictions_between_single_samples_are_of_one_state(name: str) -> None:
    X, y = data(200)
    alone, shared, done = MAKERS[name](), MAKERS[name](), Event()
    states, seen = {answer(alone)}, []
    for sample in zip(X, y, strict=True):
        alone.learn(*sample)
        states.add(answer(alone))

    def learn() -> None:
        for sample in zip(X, y, strict=True):
            shared.learn(*sample)
            time.sleep(0)
        done.set()

    def ask() -> None:
        while not done.is_set():
            seen.append(answer(shared))

    assert in_threads(learn, ask, ask) == []
    assert set(seen) <= states
    assert_same_state(shared, alone)


@makers
def test_threads_that_learn_take_turns(make: Callable[[], Any]) -> None:
    X, y = data(240)
    model = make()
    halves = [slice(0, 120), slice(120, 240)]
    assert in_threads(*(lambda rows=rows: model.learn(X[rows], y[rows]) for rows in halves)) == []
    assert model.seen == 240
    orders = []
    for order in (halves, halves[::-1]):
        one = make()
        for rows in order:
            one.learn(X[rows], y[rows])
        orders.append(answer(one))
    assert answer(model) in orders


def test_a_merge_keeps_the_locks_that_others_wait_for() -> None:
    X, y = data(200)
    model, other = (MAKERS["absorbing"]() for _ in range(2))
    model.learn(X[:100], y[:100])
    other.learn(X[100:], y[100:])
    lock, turn = model._state_lock, model._learn_lock
    model.merge(other)
    assert (model._state_lock, model._learn_lock) == (lock, turn)
    model.retune()
    assert (model._state_lock, model._learn_lock) == (lock, turn)


def test_a_warm_up_keeps_the_locks_that_others_wait_for() -> None:
    X, y = data(200)
    model = MAKERS["self-tuning"]()
    lock, turn = model._state_lock, model._learn_lock
    model.learn(X[:10], y[:10])
    model.learn(X[10:100], y[10:100])
    model.fit(X, y)
    assert (model._state_lock, model._learn_lock) == (lock, turn)


@pytest.mark.parametrize("name", ["pog", "dense", "window", "absorbing", "self-tuning"])
def test_ctrl_c_stops_between_blocks_with_a_consistent_state(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = data()
    model = MAKERS[name]()
    model.learn(X[:100], y[:100])
    before = model.copy()
    entered = Uninterrupted.__enter__

    def interrupted(self: Uninterrupted) -> Uninterrupted:
        entered(self)
        os.kill(os.getpid(), signal.SIGINT)  # at the worst moment: as the learning begins
        time.sleep(0.001)
        return self

    monkeypatch.setattr(Uninterrupted, "__enter__", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.learn(X[100:], y[100:])
    monkeypatch.undo()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert_same_state(model, before)
    for one in (model, before):
        one.learn(X[100:], y[100:])
    assert_same_state(model, before)


def test_a_retuning_lets_others_predict_but_not_learn_or_see_half_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, y = data(60)
    blocked: list[bool] = []

    def waits(job: Callable[[], object]) -> bool:
        thread = Thread(target=job, daemon=True)
        thread.start()
        thread.join(0.05)
        return thread.is_alive()

    class Watched(pogp.AbsorbingPOG):
        def __setattr__(self, name: str, value: Any) -> None:
            if name == "_posterior" and self.seen:
                blocked.append(waits(lambda: self.predict(QUERIES)))
            super().__setattr__(name, value)

    model = Watched(pogp.RBF(0.7), 0.01, None, max_size=20)
    model.learn(X[:40], y[:40])
    blocked.clear()

    def found(posterior: Any, reservoir: Any, scale: Any, relearn: Any, seed: int) -> Retuned:
        assert not waits(lambda: model.predict(QUERIES))
        assert waits(lambda: model.learn(X[40:], y[40:]))
        kernel, noise = pogp.RBF(0.9), 0.02
        tuned = Tuned(kernel, noise, 0.0, evaluations=1, converged=True)
        return Retuned(tuned, posterior.under(kernel, noise), np.ones(1), relearned=False)

    monkeypatch.setattr(absorbing, "retuned", found)
    model.retune()
    assert blocked[0]
    assert (model.kernel, model.noise) == (pogp.RBF(0.9), 0.02)

"""What the absorbed posterior keeps: it goes on bit for bit, and does not take just anything."""

import pickle
from functools import cache

import numpy as np
import pytest

import pogp

from ..conftest import assert_same_state

VARYING = pogp.Linear(0.5) + pogp.RBF(0.5)
MODELS = {
    "budget": lambda: pogp.AbsorbingPOG(pogp.RBF(0.4), 0.01, 0.02, calibrate=True),
    "cap": lambda: pogp.AbsorbingPOG(pogp.RBF(0.4), 1e-4, None, max_size=23, share=0.0),
    "marginalise": lambda: pogp.AbsorbingPOG(
        VARYING, 0.01, 0.01, max_size=30, projection="marginalise"
    ),
    "forgetting": lambda: pogp.AbsorbingPOG(pogp.RBF(0.4), 0.01, 0.02, forgetting=0.97),
    "outputs": lambda: pogp.AbsorbingPOG(VARYING, 0.01, None, max_size=33, forgetting=0.999),
    "SOGP": lambda: pogp.SOGP(VARYING, 0.01, 30),
    "KRLST": lambda: pogp.KRLST(pogp.Matern32(0.4), 0.01, 30, forgetting=0.95),
    "KRLSALD": lambda: pogp.KRLSALD(VARYING, 0.01, 1e-3),
    "McIntire": lambda: pogp.McIntire(pogp.RBF(0.4), 0.01, 0.05),
}
ANY = pytest.mark.parametrize("name", MODELS)


def stream(name, n=230, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    X[::7] = np.round(X[::7], 1)
    y = np.sin(3 * X).sum(axis=1) + 0.1 * rng.normal(size=n)
    return X, np.column_stack([y, -(y**2)]) if name == "outputs" else y


@ANY
def test_a_batch_that_fails_leaves_nothing_behind(backend, name):
    X, y = stream(name, 49 if backend == "reference" else 230)
    model, fresh = MODELS[name](), MODELS[name]()
    for rows in np.array_split(np.arange(len(X)), 7):
        model.learn(X[rows], y[rows])
        with pytest.raises(ValueError, match="finite"):
            model.learn(X[rows], y[rows] + np.nan)
        fresh.learn(X[rows], y[rows])
        assert_same_state(model, fresh)


@ANY
def test_copies_at_any_step_continue_bit_for_bit(backend, name):
    """Updates are owed, beliefs half forgotten, and room is made at other moments."""
    X, y = stream(name)
    model, moments, end = MODELS[name](), (1, 15, 40, 63, 64, 65, 131), 140
    if backend == "reference":  # which owes no updates
        moments, end = (1, 38), 45
    copies = []
    for i in range(end):
        model.learn(X[i : i + 1], y[i : i + 1])
        if i + 1 in moments:
            again = model.copy() if len(copies) % 2 else pickle.loads(pickle.dumps(model))
            copies.append((i + 1, again))
    batch = MODELS[name]()
    batch.learn(X[:end], y[:end])
    assert_same_state(model, batch)
    for seen, copy in copies:
        if seen % 2:
            copy.learn(X[seen:end], y[seen:end])
        else:
            for i in range(seen, end):
                copy.learn(X[i : i + 1], y[i : i + 1])
        assert_same_state(model, copy)
        for ours, theirs in zip(model.predict(X), copy.predict(X), strict=True):
            np.testing.assert_array_equal(ours, theirs)


@ANY
def test_an_exported_state_does_not_change(backend, name):
    X, y = stream(name)
    model = MODELS[name]()
    model.learn(X[:50], y[:50])
    kept = model.state()
    frozen = pickle.dumps(kept)
    for i in range(50, 70):
        model.learn(X[i : i + 1], y[i : i + 1])
    assert_same_state(kept, pickle.loads(frozen))


def negated(state):
    return {"inverse": -state["inverse"], "inverse_left": -state["inverse_left"]}


CRAFTED = {
    "negated inverse": negated,
    "inverse of nothing": lambda state: {"inverse": 2 * state["inverse"]},
    "covariance above the prior": lambda state: {
        "covariance0": 1e6 * np.ones_like(state["covariance0"])
    },
    "negative covariance": lambda state: {"covariance0": -1 - state["covariance0"]},
    "values not a number": lambda state: {"values": np.nan * state["values"]},
    "weights infinite": lambda state: {"weights": np.inf * np.ones_like(state["weights"])},
    "inverse not a number": lambda state: {"inverse": np.nan * state["inverse"]},
    "covariance not a number": lambda state: {"covariance0": np.nan * state["covariance0"]},
    "spread not a number": lambda state: {"spread": np.nan * state["spread"]},
    "spread negative": lambda state: {"spread": -state["spread"]},
    "information negated": lambda state: {"information": -state["information"]},
    "inputs not a number": lambda state: {"inputs": np.nan * state["inputs"]},
    "inputs all the same": lambda state: {"inputs": 0 * state["inputs"]},
    "relevance not a number": lambda state: {"relevance": np.nan * state["relevance"]},
    "kept not a number": lambda state: {"kept": np.nan * state["kept"]},
    "kept zero": lambda state: {"kept": 0 * state["kept"]},
    "shift above one": lambda state: {"shift": state["shift"] + 2},
    "lead beyond": lambda state: {"lead": 3},
    "too many owed": lambda state: {
        f"inverse_{side}": np.zeros((33, len(state["arrivals"]))) for side in ("left", "right")
    },
    "owed unevenly": lambda state: {"inverse_left": np.zeros((40, len(state["arrivals"])))},
    "recent noise negative": lambda state: {"recent_noises": -state["recent_noises"]},
    "recent targets not a number": lambda state: {
        "recent_targets": np.nan * state["recent_targets"]
    },
    "more recent samples than are kept": lambda state: {
        f"recent_{name}": np.concatenate([state[f"recent_{name}"]] * 9)
        for name in ("inputs", "targets", "noises", "arrivals")
    },
    "short": lambda state: {"spread": state["spread"][:-1]},
    "of another type": lambda state: {"values": state["values"].astype(np.float32)},
}


def empty():
    return pogp.AbsorbingPOG(pogp.RBF(0.4), 0.01, 0.02, max_size=23)


@cache
def memory_of(backend):
    X, y = stream("cap")
    model = empty()
    model.learn(X[:100], y[:100])
    return model.state()


@pytest.mark.parametrize("craft", CRAFTED)
def test_crafted_states_are_refused(backend, craft):
    memory = memory_of(backend)
    wrong = CRAFTED[craft](memory)
    with np.errstate(all="ignore"), pytest.raises(ValueError, match=r"."):
        empty().restore({**memory, **wrong})
    fresh = empty()
    fresh.restore(memory)
    assert_same_state(fresh, memory)


@ANY
def test_a_core_that_restores_its_own_state_continues_as_before(backend, name):
    """Where it has room, nothing is allocated: what it had must be gone."""
    X, y = stream(name)
    model, other = MODELS[name](), MODELS[name]()
    start, end = (45, 60) if backend == "reference" else (150, 230)
    model.learn(X[:start], y[:start])
    other.learn(X[:start], y[:start])
    other._posterior.core.restore(other._posterior.core.state())
    assert_same_state(other, model)
    for one in (model, other):
        one.learn(X[start:end], y[start:end])
    assert_same_state(other, model)

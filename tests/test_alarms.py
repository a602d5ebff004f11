"""Alarms: conformal ranks against brute force, the promised rate, long faults, state."""

import numpy as np
import pytest

from pogp.alarms import Alarm


def by_hand(surprises, rate):
    """The definition, with the whole window at hand."""
    window, entered, ringing, alarms = Alarm(rate).window, [], False, []
    for surprise in surprises:
        recent = entered[-window:]
        p = (1 + sum(other >= surprise for other in recent)) / (1 + len(recent))
        alarm = p <= rate * (1 + 1e-12)
        if not (alarm and ringing):
            entered.append(surprise)
        ringing = alarm
        alarms.append(alarm)
    return alarms


@pytest.mark.parametrize("rate", [0.3, 0.1])
def test_alarms_are_those_of_the_whole_window(rate):
    rng = np.random.default_rng(0)
    surprises = np.abs(rng.standard_t(3, 3 * Alarm(rate).window)).round(2)  # with ties
    surprises[200:220] = 50.0
    alarm = Alarm(rate)
    assert [alarm.learn(value) for value in surprises.tolist()] == by_hand(surprises, rate)


@pytest.mark.parametrize("rate", [0.05, 0.01])
def test_the_rate_is_met_whatever_the_distribution(rate):
    rng = np.random.default_rng(1)
    for draw in (rng.standard_cauchy, rng.standard_normal, rng.standard_exponential):
        alarm = Alarm(rate)
        hits = [alarm.learn(value) for value in np.abs(draw(20_000)).tolist()]
        assert rate / 1.2 < np.mean(hits) < 1.2 * rate


def test_no_alarm_is_possible_before_the_rate_can_be_told():
    alarm = Alarm(0.05)
    assert not any(alarm.learn(float(value)) for value in range(19))
    assert alarm.learn(19.0)


def test_a_long_fault_enters_the_window_once():
    alarm = Alarm(0.01)
    for value in np.abs(np.random.default_rng(0).standard_normal(2000)).tolist():
        alarm.learn(value)
    before = alarm.count
    assert all(alarm.learn(100.0 + i) for i in range(300))
    assert alarm.count == before + 1
    assert alarm.threshold < 4


def test_the_state_is_bounded_and_goes_on_exactly():
    values = np.abs(np.random.default_rng(2).standard_normal(30_000)).tolist()
    whole, first = Alarm(0.005), Alarm(0.005)
    expected = [whole.learn(value) for value in values]
    found = [first.learn(value) for value in values[:17_000]]
    assert len(first.memory()["kept"]) <= 16 * 50
    second = Alarm.of(first.memory())
    assert found + [second.learn(value) for value in values[17_000:]] == expected


@pytest.mark.parametrize("rate", [0.0, 1.0, -1, "much", float("nan")])
def test_a_rate_lies_between_0_and_1(rate):
    with pytest.raises(ValueError, match="rate must be"):
        Alarm(rate)


def test_a_surprise_is_a_finite_number_and_a_state_is_whole():
    alarm = Alarm(0.1)
    with pytest.raises(ValueError, match="surprise must be a finite number, got nan"):
        alarm.learn(float("nan"))
    for broken in ({}, alarm.memory() | {"count": 5}, alarm.memory() | {"kept": [1]}):
        with pytest.raises(ValueError, match="not the memory of an alarm"):
            Alarm.of(broken)

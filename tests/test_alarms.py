"""Alarms: conformal ranks against brute force, the promised rate, long faults, state."""

import numpy as np
import pytest

from pogp.alarms import Alarm


def by_hand(surprises, rate):
    """The definition, with the whole window at hand."""
    window, alarms, huge = Alarm(rate).window, [], []
    runs = rate <= 0.1  # faults do not enter
    for i, surprise in enumerate(surprises):
        ring = [False, *alarms, False]
        entered = [
            surprises[j]
            for j in range(i)
            if not (runs and ring[j + 1] and (j == i - 1 or ring[j] or ring[j + 2] or huge[j]))
        ]
        recent = entered[-window:]
        p = (1 + sum(other >= surprise for other in recent)) / (1 + len(recent))
        alarms.append(p <= rate * ((1 - rate) ** 2 if runs else 1) * (1 + 1e-12))
        huge.append(surprise > 2 * max(recent, default=0.0))
    return alarms


@pytest.mark.parametrize("rate", [0.3, 0.1])
def test_alarms_are_those_of_the_whole_window(rate):
    rng = np.random.default_rng(0)
    surprises = np.abs(rng.standard_t(3, 3 * Alarm(rate).window)).round(2)  # with ties
    surprises[200:220] = 50.0
    surprises[300] = 90.0
    alarm = Alarm(rate)
    assert [alarm.learn(value) for value in surprises.tolist()] == by_hand(surprises, rate)


@pytest.mark.parametrize("rate", [0.3, 0.1, 0.05, 0.01])
def test_the_rate_is_met_whatever_the_distribution(rate):
    rng = np.random.default_rng(1)
    for draw in (rng.standard_cauchy, rng.standard_normal, rng.standard_exponential):
        alarm = Alarm(rate)
        hits = [alarm.learn(value) for value in np.abs(draw(20_000)).tolist()]
        assert rate / 1.2 < np.mean(hits) < 1.2 * rate


def test_no_alarm_is_possible_before_the_window_is_long_enough():
    alarm = Alarm(0.05)
    assert not any(alarm.learn(float(value)) for value in range(22))
    assert alarm.learn(22.0)


def test_a_fault_before_alarms_are_possible_does_not_enter_the_window():
    surprises = np.abs(np.random.default_rng(0).standard_normal(900)).tolist()
    surprises[200] = 100.0
    alarm = Alarm(0.002)
    alarms = [alarm.learn(value) for value in surprises]
    assert alarm.count == 899 - sum(alarms[-1:])
    assert not alarms[200]
    assert alarm.learn(50.0)


def test_two_far_rows_before_alarms_are_possible_are_a_change():
    alarm = Alarm(0.002)
    for value in [*np.linspace(0.0, 3.0, 60).tolist(), 100.0, 100.0, 100.0]:
        alarm.learn(value)
    assert alarm.count == 62


def test_faults_do_not_enter_the_window():
    """Faults do not raise the threshold: the rate of false alarms is as promised beside them."""
    surprises = np.abs(np.random.default_rng(0).standard_normal(20_000))
    ordinary = np.ones(len(surprises), dtype=bool)
    for start in range(1000, 20_000, 500):
        surprises[start : start + 30] += 10.0
        ordinary[start : start + 30] = False
    alarm = Alarm(0.01)
    alarms = np.array([alarm.learn(value) for value in surprises.tolist()])
    assert alarms[~ordinary].all()
    assert 0.008 < alarms[ordinary].mean() < 0.012
    assert alarm.threshold < 3


def test_the_state_is_bounded_and_goes_on_exactly():
    values = np.abs(np.random.default_rng(2).standard_normal(30_000)).tolist()
    whole, first = Alarm(0.005), Alarm(0.005)
    expected = [whole.learn(value) for value in values]
    found = [first.learn(value) for value in values[:17_000]]
    assert len(first.state()["kept"]) <= 16 * 50
    second = Alarm.of(first.state())
    assert found + [second.learn(value) for value in values[17_000:]] == expected


@pytest.mark.parametrize("rate", [0.0, 1.0, -1, "much", float("nan")])
def test_a_rate_lies_between_0_and_1(rate):
    with pytest.raises(ValueError, match="rate must be"):
        Alarm(rate)


def test_a_surprise_is_a_finite_number_and_a_state_is_whole():
    alarm = Alarm(0.1)
    with pytest.raises(ValueError, match="surprise must be a finite number, got nan"):
        alarm.learn(float("nan"))
    for broken in ({}, alarm.state() | {"count": 5}, alarm.state() | {"kept": [1]}):
        with pytest.raises(ValueError, match="not the state of an alarm"):
            Alarm.of(broken)

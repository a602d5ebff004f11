"""The simulation of many machines agrees with what can be worked out by hand."""

import pytest

from benchmarks.scaling import FAN, Machines, levels, passed, stage


def test_tasks_wait_for_a_core_or_for_the_driver():
    assert stage([1.0] * 4, cores=2, launch=0.0) == 2.0
    assert stage([3.0, 1.0, 1.0, 1.0], cores=2, launch=0.0) == 3.0
    assert stage([0.0] * 10, cores=100, launch=0.1) == pytest.approx(1.0)
    assert stage([], cores=2, launch=0.1) == 0.0


def test_the_tree_has_the_levels_of_its_parts():
    assert list(levels(64)) == []
    assert list(levels(10_000)) == [625, 40]


def test_a_pass_moves_every_part_once_at_each_level():
    machines = Machines(launch=0.0, network=1e6, disk=1e12, cores=1)
    rows = 10_000 * 10**6
    whole, tree, moved = passed(rows, 10_000, 1e-6, 0.0, 1000, machines)
    assert whole == pytest.approx(1.0)
    assert moved == 1000 * (10_000 + 625 + 40)
    assert tree == pytest.approx(2 * FAN * 1e-3 + 40e-3)

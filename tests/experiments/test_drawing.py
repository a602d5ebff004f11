"""Numbers, tables and figures from records whose contents are known."""

import doctest
import importlib
import pkgutil
import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

import experiments.drawing
import experiments.readings
from experiments.drawing import tables
from experiments.drawing.report import FIGURES
from experiments.drawing.style import LOOKS, STYLE
from experiments.methods import METHODS
from experiments.parts.frontier import GRID
from experiments.readings.compare import Comparison, comparison
from experiments.readings.estimates import Estimate
from experiments.readings.frontier import frontier as frontier_of
from experiments.records import Records
from pogp.report import style as package_style

from .made_up import OFF, SEEN, SMSE, make

ERROR = 0.01 * np.sqrt(2 / 3) / 2


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Records:
    return make(tmp_path_factory.mktemp("records"))


@pytest.fixture(scope="module")
def kin40(records: Records) -> Comparison:
    found = comparison(records, "kin40")
    assert found is not None
    return found


def rows_of(table: str) -> dict[str, list[str]]:
    """The cells of a table by their first column, the heading under 'head'."""
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    assert len({len(line) for line in lines}) == 1
    return {"head": lines[0]} | {line[0]: line[1:] for line in lines[2:]}


# ---- the numbers


@pytest.mark.parametrize("package", [experiments.drawing, experiments.readings])
def test_examples_in_docstrings_hold(package) -> None:
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        assert doctest.testmod(importlib.import_module(module.name)).failed == 0


def test_an_estimate_is_mean_error_and_spread() -> None:
    values = np.random.default_rng(0).normal(size=7)
    found = Estimate.of(values)
    assert found.mean == pytest.approx(values.mean())
    assert found.error == pytest.approx(values.std(ddof=1) / np.sqrt(7))
    assert found.above(found.mean - 3 * found.error) == pytest.approx(3)
    assert not Estimate.of([1.0]).clear  # one repeat says nothing about chance
    with pytest.raises(ValueError, match="at least one repeat"):
        Estimate.of([])


def test_methods_are_compared_repeat_by_repeat(kin40: Comparison) -> None:
    excess = kin40.excess("sogp", "dense")
    assert excess.mean == pytest.approx(SMSE["sogp"] - SMSE["dense"])
    assert excess.error == pytest.approx(0, abs=1e-12)  # they are off by the same in each repeat
    assert kin40.worse("sogp", "dense")
    assert not kin40.worse("dense", "sogp")
    assert kin40.best_online().case == "pog-published"


def test_a_set_that_is_not_complete_is_none(tmp_path: Path) -> None:
    records = make(tmp_path, topics=("boston",))
    path = tmp_path / "compare-boston.jsonl"
    lines = [line for line in path.read_text().splitlines() if '"sogp"' not in line]
    path.write_text("\n".join(lines) + "\n")
    assert comparison(records, "boston") is not None
    assert comparison(Records(tmp_path), "boston") is None
    assert frontier_of(Records(tmp_path), "kin40") is None


def test_the_frontier_ranks_methods_by_what_a_size_buys(records: Records) -> None:
    found = frontier_of(records, "kin40")
    assert found is not None
    first, point = next(iter(found.within(45).items()))
    assert (first, point.size.mean) == ("pog-published", 40)
    assert point.smse.mean == pytest.approx(0.5 - 0.05 * 2)
    assert found.within(5) == {}


# ---- the tables


def test_table_2_has_our_scores_the_papers_and_the_difference(kin40: Comparison) -> None:
    rows = rows_of(tables.scores(kin40))
    assert rows["head"][:5] == ["method", "tuned on", "SMSE", "paper", "difference"]
    pog, sogp = SMSE["pog-published"], SMSE["sogp"]
    assert (pog, sogp) == (0.16, 0.22)
    assert rows["POG as published"] == [
        "first slice",
        "**0.1600 ± 0.0041**",
        "0.1943",
        f"−0.0343 (−{0.0343 / ERROR:.1f} s.e.)",
        "1.160 ± 0.004",
        "**2.079 ± 0.004**",
        "0.5620",
        "+1.517 (over 20 s.e.)",
        "91.6 %",
    ]
    assert rows["SPGP"][0] == "all samples"
    assert rows["SOGP"][6] == "30.565"
    assert rows["random subset"][2:4] == ["–", "–"]
    assert len(rows) == 1 + len(SMSE)


def test_table_3_has_sizes_and_times(kin40: Comparison) -> None:
    rows = rows_of(tables.costs(kin40))
    assert rows["SOGP"] == [
        *("40", "392", "−352"),
        *("0.500", "391.34", "783"),  # seconds of an epoch, the paper's, 391.34 / 0.5
        *("102", "105,800", "1,040"),  # the repeats take 100 to 103 µs
    ]
    assert rows["dense GP"][:3] == ["200", "3,700", "−3,500"]
    assert rows["SPGP"][3:] == ["2.00", "104.96", "52.5", "–", "–", "–"]
    assert rows["POG as written"][1:3] == ["–", "–"]


def test_the_table_of_matches_tells_a_match_from_a_miss(tmp_path: Path) -> None:
    records = make(tmp_path, topics=("kin40",), smse={"pog-published": 0.1953})
    found = comparison(records, "kin40")
    assert found is not None
    lines = tables.matches([found], "pog-published").splitlines()
    smse, _, order = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:])
    assert smse[2:6] == ["0.1943", "0.1953 ± 0.0041", "+0.0010 (+0.2 s.e.)", "yes"]
    assert smse[6:] == ["0.1953", "0.0082"]  # repeat 0, and the deviation between repeats
    assert order[2:7] == ["392", "40.0", "−352.0", "no", "40"]


def test_the_table_of_the_frontier(records: Records) -> None:
    found = frontier_of(records, "kin40")
    assert found is not None
    assert tables.best([found], [5, 10, 40], places=2).splitlines()[2:] == [
        "| kin40 | 5 | – | – |",
        "| kin40 | 10 | POG as published 0.500 | POG as written 0.510 |",
        "| kin40 | 40 | POG as published 0.400 | POG as written 0.410 |",
    ]


# ---- the figures


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "markdown_it", None)
    with pytest.raises(ImportError, match=r"markdown_it.*pip install 'pogp\[reproduce\]'"):
        importlib.reload(experiments.drawing)


def test_every_method_has_a_look_and_no_two_the_same() -> None:
    assert {method.look for method in METHODS.values()} == set(LOOKS)
    looks = {(look.colour, look.style, look.marker) for look in LOOKS.values()}
    assert len(looks) == len(LOOKS)
    shared = package_style.METHODS.keys() & LOOKS.keys()
    assert len(shared) > 3
    for name in shared:
        assert LOOKS[name].colour == package_style.METHODS[name].colour


def drawn(name: str, records: Records) -> Figure:
    with rc_context(STYLE):
        figure = FIGURES[name](records)
        FigureCanvasAgg(figure).draw()
    return figure


def texts_of(figure: Figure) -> list[Text]:
    """What can be read, without labels of ticks that are off their axis, which are not drawn."""
    texts = [text for legend in figure.legends for text in legend.get_texts()]
    for axes in figure.axes:
        texts += [axes.xaxis.label, axes.yaxis.label, axes.title, axes._left_title]
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
            texts += [tick.label1 for tick in ticks if low <= tick.get_loc() <= high]
    return [text for text in texts if text.get_text().strip()]


@pytest.mark.parametrize("name", ["curves-boston", "curves-kin40", "frontier-kin40"])
def test_figures_are_labelled_and_nothing_overlaps(name: str, records: Records) -> None:
    figure = drawn(name, records)
    for axes in figure.axes:
        assert axes.get_xlabel()
        assert axes.get_ylabel()
        assert axes.get_title(loc="left")
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts_of(figure)]
    for (one, first), (other, second) in combinations(boxes, 2):
        assert not first.shrunk(0.9, 0.9).overlaps(second.shrunk(0.9, 0.9)), (one, other)
    (legend,) = figure.legends
    assert all(not legend.get_window_extent().overlaps(axes.bbox) for axes in figure.axes)


def test_curves_are_means_with_bands_of_one_error(records: Records) -> None:
    errors, _, distances, sizes = drawn("curves-kin40", records).axes
    lines = {line.get_label(): line for line in errors.get_lines()}
    sogp = lines["SOGP"]
    expect = SMSE["sogp"] + np.mean(OFF) + 1 / np.array(SEEN)
    np.testing.assert_allclose(sogp.get_ydata(), expect)
    band = next(
        each
        for each in errors.collections
        if np.allclose(each.get_facecolor()[0, :3], _rgb(LOOKS["sogp"].colour))
    )
    top = max(vertex[1] for vertex in band.get_paths()[0].vertices if vertex[0] == SEEN[-1])
    assert top == pytest.approx(expect[-1] + ERROR)
    level = lines["SPGP (offline)"].get_ydata()
    np.testing.assert_allclose(level, SMSE["spgp"])
    ends = {line.get_label(): max(line.get_xdata(), default=0) for line in distances.get_lines()}
    assert ends["POG as published"] == SEEN[-1]
    assert "SPGP (offline)" not in ends
    assert {line.get_label() for line in sizes.get_lines()} >= {"SPGP (offline)", "dense GP"}


def test_the_papers_figures_are_marked_at_the_end(records: Records) -> None:
    errors, losses, *_ = drawn("curves-kin40", records).axes
    marked = {
        line.get_markeredgecolor(): (line.get_marker(), line.get_ydata()[0])
        for line in errors.get_lines()
        if line.get_marker() != "None" and len(line.get_xdata())
    }
    assert marked[LOOKS["pog"].colour] == ("D", 0.1943)
    beyond = [line for line in losses.get_lines() if line.get_marker() == "^"]
    assert [line.get_markeredgecolor() for line in beyond] == [LOOKS["sogp"].colour]  # 30.6


def test_the_frontier_is_of_means_by_size(records: Records) -> None:
    errors, _ = drawn("frontier-kin40", records).axes
    lines = {line.get_label(): line for line in errors.get_lines()}
    ranks = np.arange(len(GRID["sogp"][1]))
    np.testing.assert_array_equal(lines["SOGP"].get_xdata(), 10 * 2.0**ranks)
    np.testing.assert_allclose(lines["SOGP"].get_ydata(), 0.53 - 0.05 * ranks)
    np.testing.assert_allclose(lines["dense GP, all samples"].get_ydata(), SMSE["dense"] + 1 / 200)
    assert lines["SPGP (offline)"].get_xdata()[0] == 40


def _rgb(colour: str) -> list[float]:
    return [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]

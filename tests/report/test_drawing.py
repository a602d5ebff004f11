"""Axes, marks and markup of pages: what is drawn is read back from the drawing."""

import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pogp.report.axes import crowded, linear, logarithmic, number, width
from pogp.report.markup import Markup, element, joined, table
from pogp.report.svg import HEIGHT, WIDTH, Figure, Panel, fitting

numbers = st.floats(-1e15, 1e15, allow_subnormal=False).filter(lambda x: x == 0 or abs(x) > 1e-15)
positive = st.floats(1e-30, 1e30)


def value_of(label):
    """The number that a label shows."""
    plain = label.replace(",", "").replace("−", "-")
    plain = re.sub(r"(\d*)×?10([⁻⁰¹²³⁴-⁹]+)", _power, plain)
    return float(plain)


def noted(note):
    """The offset and the unit that a note speaks of."""
    parts = [part for part in note.split(", ") if part]
    offset = sum(value_of(part.removeprefix("+ ")) for part in parts if part.startswith("+ "))
    words = {"thousands": 1e3, "millions": 1e6, "billions": 1e9}
    units = [part for part in parts if not part.startswith("+ ")]
    return offset, words.get(units[0]) or value_of(units[0].removeprefix("×")) if units else 1.0


def _power(match):
    digits = match[2].translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789"))
    return f"{match[1] or 1}e{digits}"


# ---- axes


@settings(deadline=None)
@given(numbers, numbers, st.integers(2, 8), st.booleans())
@example(51.0, 92.0, 2, False)
def test_a_linear_axis_has_its_ends_and_round_ticks(a, b, intervals, snap):
    low, high = sorted((a, b))
    axis = linear(low, high, intervals, snap=snap)
    slack = 1e-9 * (axis.high - axis.low) + 1e-15 * max(abs(low), abs(high))
    assert axis.low <= low + slack
    assert high - slack <= axis.high
    assert 2 <= len(axis.ticks) <= intervals + 3
    assert all(axis.low - slack <= tick <= axis.high + slack for tick in axis.ticks)
    assert len(set(axis.labels)) == len(axis.labels) == len(axis.ticks)
    assert max(len(label) for label in axis.labels) <= 10
    offset, unit = noted(axis.note)
    shown = [offset + unit * value_of(label) for label in axis.labels]
    np.testing.assert_allclose(shown, axis.ticks, rtol=1e-12, atol=1e-6 * (axis.high - axis.low))


@settings(deadline=None)
@given(positive, positive, st.integers(5, 9))
def test_a_logarithmic_axis_has_its_ends_and_its_labels_say_where_ticks_are(a, b, intervals):
    low, high = sorted((a, b))
    axis = logarithmic(low, high, intervals)
    assert axis.low <= low * (1 + 1e-8)
    assert high <= axis.high * (1 + 1e-8)
    assert 2 <= len(axis.ticks) <= intervals + 1
    np.testing.assert_allclose([value_of(label) for label in axis.labels], axis.ticks)


@pytest.mark.parametrize(
    ("axis", "labels", "note"),
    [
        (linear(0, 12_000, 6), ["0", "2,000", "4,000", "6,000", "8,000", "10,000", "12,000"], ""),
        (linear(0, 1e9, 2), ["0", "0.5", "1.0"], "billions"),
        (linear(-0.3, 0.7, 5), ["−0.2", "0", "0.2", "0.4", "0.6"], ""),
        (linear(1e12 - 3, 1e12 + 3, 3), ["0", "2", "4"], "+ 999,999,999,998"),
        (linear(2e-7, 6e-7, 2), ["200", "400", "600"], "×10⁻⁹"),
        (linear(0, 1, 4, whole=True), ["0", "1"], ""),
        (linear(3, 3, 2, snap=True), ["2.5", "3.0", "3.5"], ""),
        (linear(0, 0, 2), ["−0.5", "0", "0.5"], ""),
    ],
)
def test_labels_are_short_and_the_note_says_the_rest(axis, labels, note):
    assert (list(axis.labels), axis.note) == (labels, note)
    assert axis.named("power") == (f"power ({note})" if note else "power")


def test_places():
    np.testing.assert_allclose(linear(2, 6, 2).place([2, 3, 6, 8]), [0, 0.25, 1, 1.5])
    places = logarithmic(1, 100, 4).place([1, 10, 100, 0, -1])
    np.testing.assert_allclose(places, [0, 0.5, 1, np.nan, np.nan])


@settings(deadline=None)
@given(numbers, numbers)
@example(0.0052734375, 0.0064453125)
@example(-0.0014094725, -0.0014085348)
def test_labels_below_an_axis_have_room(a, b):
    low, high = sorted((a, b))
    for beside in (linear(0, 4, 4), linear(0, 99_999, 4)):
        axis = fitting(low, high, beside)
        panel = Panel(axis, beside)
        assert not crowded(axis, panel.right - panel.left)
        assert panel.across(axis.ticks[0]) - width(axis.labels[0]) / 2 >= 0
        assert panel.across(axis.ticks[-1]) + width(axis.labels[-1]) / 2 <= WIDTH


@settings(deadline=None)
@given(st.integers(0, 10**12), st.integers(1, 10**9))
def test_counts_have_whole_ticks(first, span):
    axis = fitting(first, first + span, linear(0, 9, 4), whole=True)
    assert 2 <= len(axis.ticks) <= 8
    assert all(tick == round(tick) for tick in axis.ticks)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (99.96, "100"),
        (0.00012, "0.00012"),
        (1e-5, "1×10⁻⁵"),
        (-1234.5, "−1,230"),
        (2.5e7, "2.5×10⁷"),
    ],
)
def test_numbers_are_written_as_by_hand(value, text):
    assert number(value) == text


# ---- markup


def test_text_is_escaped_and_markup_is_not():
    assert joined("a<b", element("i", "&"), None, 3) == "a&lt;b<i>&amp;</i>3"
    assert element("p", Markup("<b>"), title='"<') == '<p title="&quot;&lt;"><b></p>'
    assert element("meta", charset="utf-8") == '<meta charset="utf-8">'


def test_a_table_names_its_rows_and_columns():
    tree = ElementTree.fromstring(table("Scores", [("a<", ["1", "2"])], ("", "x", "y")))
    assert [cell.text for cell in tree.iter("th")] == [None, "x", "y", "a<"]
    assert [cell.get("scope") for cell in tree.iter("th")] == ["col", "col", "col", "row"]
    assert [cell.text for cell in tree.iter("td")] == ["1", "2"]
    assert tree.find("table/caption").text == "Scores"


# ---- marks


@pytest.fixture
def panel():
    return Panel(linear(0, 10, 5), linear(0, 100, 5))


def drawn(panel, kind):
    """The elements of one kind of mark."""
    tree = ElementTree.fromstring(panel.svg("a", "A", "what it shows"))
    return [mark for mark in tree.iter() if f" {kind} " in f" {mark.get('class', '')} "]


def corners(path):
    """The points of a path of straight lines."""
    return np.array([point.split() for point in re.split("[MLZ]", path) if point], dtype=float)


def test_a_line_goes_where_its_values_are(panel):
    x, y = np.array([0.0, 2.5, 10.0]), np.array([0.0, 100.0, 50.0])
    panel.line(x, y, "blue")
    points = corners(drawn(panel, "line")[0].get("d"))
    np.testing.assert_allclose(
        points[:, 0], panel.left + x / 10 * (panel.right - panel.left), atol=0.05
    )
    top, foot = panel.down(100.0), panel.down(0.0)
    np.testing.assert_allclose(points[:, 1], foot + y / 100 * (top - foot), atol=0.05)


def test_a_line_has_gaps_and_lonely_points_are_dots(panel):
    panel.line([0, 1, 2, 3, 4, 5], [1, 2, np.nan, 4, np.nan, np.nan], "blue")
    assert [len(corners(mark.get("d"))) for mark in drawn(panel, "line")] == [2]
    dot = drawn(panel, "dot")[0]
    assert float(dot.get("cx")) == pytest.approx(float(panel.across(3)), abs=0.05)


def test_values_beyond_the_axis_are_drawn_at_its_edge(panel):
    panel.line([1, 2], [50, 500], "blue")
    panel.beyond([1, 2], [50, 500], "blue")
    assert corners(drawn(panel, "line")[0].get("d"))[1, 1] == pytest.approx(float(panel.down(100)))
    assert len(drawn(panel, "tip")) == 1


def test_a_band_is_closed_and_between_its_edges(panel):
    panel.band([0, 10], [10, 20], [30, 40], "blue")
    path = drawn(panel, "band")[0].get("d")
    assert path.endswith("Z")
    expected = [[0, 10], [10, 20], [10, 40], [0, 30]]
    places = [[float(panel.across(x)), float(panel.down(y))] for x, y in expected]
    np.testing.assert_allclose(corners(path), places, atol=0.05)


def test_bars_stand_on_zero_and_say_their_notes(panel):
    panel.bars([0, 5, 10], [20, 80], "blue", ["a", "b"])
    low, high = drawn(panel, "bar")
    assert float(high.get("height")) == pytest.approx(4 * float(low.get("height")), abs=0.2)
    foot = float(low.get("y")) + float(low.get("height"))
    assert foot == pytest.approx(float(panel.down(0)), abs=0.1)
    assert [mark.find("title").text for mark in (low, high)] == ["a", "b"]


def test_a_rug_leaves_out_what_is_off_the_axis_and_what_is_twice(panel):
    panel.rug([-1, 5, 5.0001, 7, 11], "blue")
    assert drawn(panel, "rug")[0].get("d").count("M") == 2
    empty = Panel(panel.x, panel.y)
    empty.rug([99], "blue")
    assert empty.marks == []


def test_strips_tile_the_panel(panel):
    panel.notes([0, 4, 10], ["one", "two"])
    strips = drawn(panel, "strip")
    left, right = (float(strip.get("x")) for strip in strips)
    assert left + float(strips[0].get("width")) == pytest.approx(right, abs=0.1)
    assert [strip.find("title").text for strip in strips] == ["one", "two"]


def test_a_figure_is_named_described_and_labelled(panel):
    panel.line([0, 1], [1, 2], "blue")
    figure = Figure("f", "Power <kW>", panel, "hours", "kW", "It rises.", (("blue", "mean"),))
    tree = ElementTree.fromstring(figure.markup())
    svg = tree.find("svg")
    assert svg.get("role") == "img"
    assert svg.find(f"*[@id='{svg.get('aria-labelledby')}']").text == "Power <kW>"
    assert svg.find(f"*[@id='{svg.get('aria-describedby')}']").text == "It rises."
    assert svg.get("viewBox") == f"0 0 {WIDTH:g} {HEIGHT:g}"
    assert [p.text for p in tree.iter("p")] == ["kW", "hours"]
    assert [(li.get("class"), li.text) for li in tree.iter("li")] == [("blue", "mean")]

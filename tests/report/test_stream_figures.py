"""The words and the figures of a page are those of the journal."""

import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import pogp
from pogp.budgets import Constant
from pogp.encoding import Encoder
from pogp.encoding.encoder import inputs_of
from pogp.report import prose, retained, slices, stream_figures, variables
from pogp.report.journal import Journal
from pogp.report.summary import Summary
from pogp.trace import Trace, blank

from ..conftest import smooth_1d, smooth_2d
from .test_page import STREAMS, follow, subject_of

# ---- words are chosen by numbers


def told(errors, variances=1.0, size=10.0, removed=0.0, scale=1.0):
    """The segments of a stream of which everything is known: y = 0 ± scale, errors as given."""
    n = len(errors)
    signs = np.where(np.arange(n) % 2, scale, -scale)
    records = blank(n)
    records[:, 0], records[:, 1] = signs - errors, variances
    records[:, 2], records[:, 3], records[:, 4] = size, removed, 0.001 * np.asarray(removed)
    journal = Journal()
    journal.add(np.zeros((n, 1)), signs, Trace(records), 5e-6 * n)
    return journal


def test_calibration_is_that_of_the_last_tenth():
    errors = np.where(np.arange(8000) % 25 < 3, 3.0, 0.1)
    errors[:7000] = 9.0
    text = prose.of_calibration(told(errors).recent())
    assert text == "Of the last 832 samples, 88.1 % lie in the 50 % band, 88.1 % in the 95 % band."


def test_the_text_says_how_the_error_changed():
    falling = np.concatenate([np.full(4000, 0.5), np.full(4000, 0.1)])
    text = prose.of_error(told(falling).segments(), told(falling).recent())
    assert text == (
        "The mean squared error went from 25 % of the variance of the targets over the first 832 "
        "samples to 1 % over the last 832 samples."
    )


def test_the_text_says_how_the_model_grew_and_what_it_cost():
    n = 4000
    text = prose.of_cost(told(np.zeros(n), size=np.arange(n)))
    assert re.match(r"The model order is still growing: 1\.9\d* times that of half time\.", text)
    assert "No point was removed. A sample took 5 µs to learn lately." in text
    settled = told(np.zeros(n), size=50, removed=1.0)
    text = prose.of_cost(settled, cap=100)
    assert text.startswith("The model order has settled below its cap. 4,000 points were removed;")
    assert "add up to 4, 0.001 per sample." in text


def test_a_model_order_that_moves_has_not_settled():
    moving = told(
        np.zeros(4000), size=np.r_[np.full(2000, 60), np.full(1000, 20), np.full(1000, 40)]
    )
    text = prose.of_cost(moving, cap=100)
    assert re.match(r"The model order was between 20 and \d+ in the second half .* 40 on av", text)
    uneven = told(
        np.zeros(4000), size=np.r_[np.full(2001, 60), np.full(1000, 19), np.full(999, 40)]
    )
    assert re.match(r"The model order was between 19 and \d+ in .* 40 on av", prose.of_cost(uneven))
    figure = stream_figures.order(uneven.segments().grouped(3), None)
    assert re.fullmatch(r"Points retained: [^.]*\.", figure.description)


def test_a_model_at_its_cap_has_not_settled():
    full = told(np.zeros(4000), size=np.minimum(np.arange(4000), 50), removed=1.0)
    text = prose.of_cost(full, cap=50, budget=Constant(1e-4))
    assert text.startswith("The model order is at its cap of 50, since about sample 9")
    assert "The cap made each step cost 10 times the budget lately." in text


def test_an_error_without_a_variance_is_absolute():
    journal = told(np.full(100, 0.5), scale=0.0)
    text = prose.of_error(journal.segments(), journal.recent())
    assert text == (
        "The mean squared error went from 0.25 in squared units over the first 50 samples to 0.25 "
        "over the last 50 samples."
    )


# ---- what is drawn is what was measured


def read(figure):
    """Read curves back from a figure, by the labels of its ticks: look → (n, 2)."""
    tree = ElementTree.fromstring(figure.panel.svg("f", "", ""))
    to_x = _reading([(t.get("x"), t.text) for t in tree.iter("text") if t.get("class") == "below"])
    log = figure.panel.y.log
    beside = [(t.get("y"), t.text) for t in tree.iter("text") if t.get("class") == "beside"]
    to_y = _reading(beside, log)
    curves = {}
    for mark in tree.iter("path"):
        if " line " in (look := mark.get("class")):
            points = np.array([p.split() for p in re.split("[ML]", mark.get("d"))[1:]], dtype=float)
            heights = to_y(points[:, 1] + 4)  # labels stand a little below their ticks
            curves[look.removeprefix("mark line ")] = np.column_stack(
                [to_x(points[:, 0]), np.exp(heights) if log else heights]
            )
    return curves


def _reading(labels, log=False):
    """The function from places to values, or their logarithms, that labels suggest."""
    places = [float(place) for place, _ in labels]
    values = [float(text.replace(",", "").replace("−", "-")) for _, text in labels]
    return np.polynomial.Polynomial.fit(places, np.log(values) if log else values, 1)


def test_curves_are_where_their_labels_say():
    segments = STREAMS["two_inputs"]().journal.segments().at_most(40)
    middles = segments.ends - segments.counts / 2
    budget = pogp.Constant(0.1)
    cases = [
        (stream_figures.error(segments), "blue", 100 * segments.error),
        (stream_figures.loss(segments), "blue", segments.loss),
        (stream_figures.coverage(segments), "orange", 100 * segments.coverage(0.8)),
        (stream_figures.order(segments, None), "blue", segments.mean("size")),
        (stream_figures.distances(segments, budget), "purple", segments.mean("spent")),
        (stream_figures.pace(segments), "blue", 1e6 * segments.mean("seconds")),
    ]
    for figure, look, values in cases:
        curve = read(figure)[look]
        axis = figure.panel.y
        resolution = 0.02 if axis.log else 0
        within = np.clip(values, axis.low, axis.high)[-len(curve) :]
        atol = 0.004 * (axis.high - axis.low) * (not axis.log)
        np.testing.assert_allclose(curve[:, 1], within, rtol=resolution, atol=atol)
        np.testing.assert_allclose(curve[:, 0], middles[-len(curve) :], atol=5)
    limits = read(stream_figures.distances(segments, budget))["grey dashed"]
    np.testing.assert_allclose(limits[:, 1], 0.1, rtol=0.02)
    assert read(stream_figures.order(segments, 60))["grey dashed"][0, 1] == pytest.approx(
        60, abs=0.5
    )


def test_distances_without_values_are_not_in_the_legend():
    segments = STREAMS["one_input"]().journal.segments()  # the dense GP compresses nothing
    figure = stream_figures.distances(segments, None)
    assert [text for _, text in figure.legend] == ["novelty", "change"]
    still = told(np.zeros(10)).segments()
    assert stream_figures.distances(still, pogp.Constant(0.1)) is None


def test_calibration_is_drawn_as_it_was_measured():
    journal = STREAMS["two_inputs"]().journal
    recent, everything = journal.recent(), journal.segments().joined()
    curves = read(stream_figures.reliability(everything, recent))
    for look, part in (("blue", recent), ("vermillion", everything)):
        for i in (5, 10, 19):
            nominal, observed = curves[look][i]
            assert nominal == pytest.approx(5 * i, abs=0.3)
            assert observed == pytest.approx(100 * part.coverage(i / 20)[0], abs=0.3)
    narrow = told(np.where(np.arange(1000) % 10 < 4, 0.1, 9.0)).recent()
    assert stream_figures.reliability(narrow, narrow).description == (
        "Recently bands are off by up to 57 points: the 95 % band holds 38 % of targets."
    )
    bars = marks(stream_figures.ranks(recent), "bar")
    heights = np.array([float(bar.get("height")) for bar in bars])
    cells = recent.cells[0].reshape(20, 2).sum(axis=1)
    np.testing.assert_allclose(heights / heights.sum(), cells / cells.sum(), atol=1e-3)


def test_retained_points_are_drawn_where_and_when_they_are():
    summary = STREAMS["two_inputs"]()
    figure = retained.scatter(summary)
    dots = marks(figure, "dot")
    assert len(dots) == summary.model.size
    inputs = summary.model.dictionary[:, [1, 0]]
    places = np.column_stack([figure.panel.across(inputs[:, 0]), figure.panel.down(inputs[:, 1])])
    drawn = np.array([(float(dot.get("cx")), float(dot.get("cy"))) for dot in dots])
    np.testing.assert_allclose(np.sort(drawn, axis=0), np.sort(places, axis=0), atol=0.051)
    ages = [int(dot.get("class")[-1]) for dot in dots]  # the oldest are drawn first
    assert ages == (5 * summary.model.indices // summary.model.seen).tolist()
    notes = [bar.find("title").text for bar in marks(retained.arrivals(summary), "bar")]
    assert sum(int(note.split()[0]) for note in notes) == summary.model.size


def test_of_very_many_points_some_are_drawn():
    X, y = smooth_1d(900)
    summary = subject_of(pogp.DenseGP(pogp.RBF(), 0.1), X, y)
    figure = retained.scatter(summary)
    assert len(marks(figure, "dot")) == retained.DRAWN
    assert figure.description.startswith("600 of 900 retained points")
    assert figure.down == "position in the stream"


def marks(figure, kind):
    tree = ElementTree.fromstring(figure.panel.svg("f", "", ""))
    return [mark for mark in tree.iter() if f" {kind} " in f" {mark.get('class', '')} "]


def test_slices_are_the_models_own_predictions():
    summary = STREAMS["two_inputs"]()
    cuts = slices.cut(summary)  # the shorter length-scale is the more relevant
    assert [(each.variable.inputs, each.output) for each in cuts] == [((1,), 0), ((0,), 0)]
    medians = np.median(summary.journal.samples.inputs, axis=0)
    for each in cuts:
        for i in (0, 30, 60):
            x = medians.copy()
            x[each.variable.inputs[0]] = each.places[i]
            mean, variance = summary.model.predict(x)
            assert each.mean[i] == pytest.approx(mean, rel=1e-9)
            assert each.margin[i] == pytest.approx(1.959964 * np.sqrt(variance), rel=1e-6)
    curve = read(slices.draw(cuts, summary)[0])["blue"]
    np.testing.assert_allclose(curve[:, 1], cuts[0].mean, atol=0.02)


def test_a_rare_value_of_an_input_has_its_slice():
    X, y = smooth_2d(256)
    X[:, 1] = np.arange(256) == 100
    summary = subject_of(pogp.POG(pogp.RBF(), 0.1), X, y)
    places = slices.cut(summary)[1].places
    assert (places[0], places[-1]) == (-0.02, 1.02)


def test_outputs_have_slices_of_their_own():
    cuts = slices.cut(STREAMS["three_outputs"]())
    assert [each.output for each in cuts] == [0, 1, 2, 0, 1, 2]
    np.testing.assert_allclose(cuts[1].mean.mean(), 1e4, rtol=0.2)


def test_categories_are_drawn_by_name():
    summary = STREAMS["categories"]()
    room, load = summary.variables
    assert (room.name, room.inputs, load.name) == ("room", (1, 2, 3, 4), "load")
    X, model = summary.journal.samples.inputs, summary.model
    frequent = room.frequent(X)[: variables.CATEGORIES]
    by_room, by_load = slices.cut(summary)
    assert by_room.places.tolist() == frequent.tolist()
    codes = np.array(list(room.codes.values()))
    for cut, i in ((by_room, 0), (by_room, 9), (by_load, 30)):
        number = np.median(X[:, 0]) if cut is by_room else cut.places[i]
        category = frequent[i] if cut is by_room else frequent[0]
        mean, variance = model.predict(np.r_[number, codes[category]])
        assert cut.mean[i] == pytest.approx(mean, rel=1e-9)
        assert cut.margin[i] == pytest.approx(1.959964 * np.sqrt(variance), rel=1e-6)
    figure = slices.draw([by_room], summary)[0]
    assert figure.title == "power by room, 10 of 12 categories"
    assert set(figure.panel.y.labels) <= {variables.shortened(name, 12) for name in room.codes}
    assert (figure.across, figure.down) == ("power", "room")
    middles = [float(mark.get("d")[1:].split()[0]) for mark in marks(figure, "line")]
    np.testing.assert_allclose(middles, figure.panel.across(by_room.mean), atol=0.051)
    assert marks(figure, "band")[0].find("title").text.startswith("room hall: ")


def test_retained_points_of_categories_are_in_their_rows():
    summary = STREAMS["categories"]()
    room, model = summary.variables[0], summary.model
    figure = retained.scatter(summary)
    assert (figure.across, figure.down) == ("load", "room")
    names = [room.texts(model.dictionary)[i] for i in range(model.size)]
    frequent = room.frequent(model.dictionary)[: variables.CATEGORIES]
    listed = [list(room.codes)[i] for i in frequent]
    dots = marks(figure, "dot")
    assert len(dots) == sum(name in listed for name in names)
    for dot in dots:
        name = dot.find("title").text.split("room ", 1)[1].rpartition(", load")[0]
        place = float(figure.panel.down(listed.index(name)))
        assert float(dot.get("cy")) == pytest.approx(place, abs=0.051)
    assert "<td>&lt;b&gt;lab&lt;/b&gt;</td>" in retained.listing(summary)


def test_with_categories_alone_points_are_drawn_by_arrival():
    cells = [[*"abcab" * 10]]
    encoder = Encoder.of(["room"], cells)
    X = inputs_of(encoder.learn(cells), encoder.dimension)
    model = pogp.POG(pogp.RBF(0.5), 0.1, max_size=9)
    journal = follow(model, X, X[:, 0])
    summary = Summary.of_table(journal, model, encoder, "y", ["pogp", "learn", "t.csv"], {})
    figure = retained.scatter(summary)
    assert (figure.across, figure.down) == ("position in the stream", "room")
    assert figure.panel.y.labels == ("a", "b", "c")
    (slice_,) = slices.draw(slices.cut(summary), summary)
    assert len(marks(slice_, "dot")) == len(journal.samples.inputs)

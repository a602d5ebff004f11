"""The report of a stream: what it says against the model and the journal, and how it looks."""

import re
import xml.etree.ElementTree as ElementTree
from functools import cache
from html.parser import HTMLParser

import numpy as np
import pytest

import pogp
from pogp.budgets import Constant
from pogp.report import page, prose, retained, slices, stream_figures
from pogp.report.axes import number
from pogp.report.journal import Journal
from pogp.report.markup import VOID
from pogp.report.summary import Summary
from pogp.trace import Trace, blank

from ..browser import DESKTOP, PHONE, opened
from ..conftest import smooth_1d, smooth_2d

SHARED = {"error", "loss", "coverage", "reliability", "ranks", "order", "distances", "pace"}
POINTS = {"retained", "arrivals"}
EVIL = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>']


def follow(model, X, y, chunk=100):
    """The journal of a model that learns a stream."""
    journal = Journal.start()
    for start in range(0, len(y), chunk):
        rows = slice(start, start + chunk)
        journal.add(X[rows], y[rows], model.learn(X[rows], y[rows]), 1e-5 * len(y[rows]))
    return journal


def subject_of(model, X, y, names=None, target="y", chunk=100):
    return Summary.of(follow(model, X, y, chunk), model, names, target)


# ---- streams of every kind


def one_sample():
    return subject_of(pogp.POG(pogp.RBF(), 0.1), np.ones((1, 2)), np.ones(1))


def two_samples():
    return subject_of(pogp.POG(pogp.RBF(), 0.1), np.array([[0.0], [1.0]]), np.array([1.0, 3.0]))


def constant_target():
    model = pogp.AbsorbingPOG(pogp.RBF(), 0.1, calibrate=True)
    return subject_of(model, smooth_2d(300)[0], np.full(300, 0.1))


def constant_inputs():
    return subject_of(pogp.POG(pogp.RBF(), 0.1), np.ones((40, 2)), np.arange(40.0))


def warming_up():
    X, y = smooth_2d(120)
    return subject_of(pogp.SelfTuning(), X, y)


def two_inputs():
    X, y = smooth_2d(1500)
    model = pogp.AbsorbingPOG(pogp.RBF([0.7, 0.5]), 0.01, max_size=60, calibrate=True, share=0.0)
    return subject_of(model, X, y, ["pressure", "temperature °C"], "power")


def tuned_for_life():
    X, y = smooth_2d(300)
    names = ["pressure", "temperature °C"]
    return subject_of(pogp.OnlineGP(max_size=25), X * [1.0, 1e3], 1e6 * y, names, "power")


def one_input():
    X, y = smooth_1d(400)
    return subject_of(pogp.DenseGP(pogp.Matern32(), 0.01), X, y)


def forty_inputs():
    X = np.random.default_rng(0).normal(size=(500, 40))
    model = pogp.POG(pogp.RBF(np.linspace(40, 4, 40)), 0.1, max_size=50)
    names = [f"a rather long name for column number {d}" for d in range(40)]
    return subject_of(model, X, np.sin(X[:, 39]), names, "target of some length too")


def three_outputs():
    X, y = smooth_2d(600)
    Y = np.column_stack([y, 1e4 + 1e3 * y, np.ones(len(y))])
    return subject_of(pogp.AbsorbingPOG(pogp.RBF(0.5), 0.01, max_size=30), X, Y)


def huge_values():
    X, y = smooth_2d(400)
    model = pogp.SelfTuning(scale=True, warmup=60)
    return subject_of(model, 1e12 * X, 1e12 + 50 * y)


def unfriendly_names():
    X, y = smooth_2d(300)
    model = pogp.POG(pogp.RBF(), 0.01, pogp.Decay(0.1, 0.3), view="everywhere", max_size=40)
    return subject_of(model, X, y, EVIL, "</title>&amp;" + "W" * 80)


def code_of_the_users():
    X, y = smooth_2d(200)
    model = pogp.POG(lambda A, B: A @ B.T + 1, 0.1, lambda t: 1e-4, max_size=9)
    return subject_of(model, X, y)


def no_positions():
    X, y = smooth_1d(300)
    return subject_of(pogp.StreamingVFE(pogp.RBF(), 0.01, 12), X, y)


STREAMS = {
    make.__name__: cache(make)
    for make in (
        one_sample,
        two_samples,
        constant_target,
        constant_inputs,
        warming_up,
        two_inputs,
        tuned_for_life,
        one_input,
        forty_inputs,
        three_outputs,
        huge_values,
        unfriendly_names,
        code_of_the_users,
        no_positions,
    )
}


class Outline(HTMLParser):
    """A page taken apart: every element is closed where it has to be."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.words = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.words.append(data)

    @property
    def ids(self):
        return [attributes["id"] for _, attributes in self.elements if "id" in attributes]

    @property
    def figures(self):
        return {attributes["id"] for tag, attributes in self.elements if tag == "svg"}

    @property
    def text(self):
        return " ".join("".join(self.words).replace("\N{NO-BREAK SPACE}", " ").split())


@pytest.fixture(params=STREAMS)
def stream(request):
    return STREAMS[request.param]()


def test_every_page_is_whole_and_self_contained(stream):
    text = page.page(stream)
    outline = Outline(text)
    assert len(set(outline.ids)) == len(outline.ids)
    tags = {tag for tag, _ in outline.elements}
    assert not tags & {"script", "img", "iframe", "object"}
    values = [(name, v) for _, attributes in outline.elements for name, v in attributes.items()]
    assert {v for name, v in values if name in ("href", "src")} == {"data:,"}
    assert not re.search(r"url\(|@import|https?:", text)
    drawing = " ".join(v for name, v in values if name in ("d", "x", "y", "cx", "cy", "height"))
    assert not re.search("nan|inf", drawing)
    assert "nan" not in outline.text.lower().split()


@pytest.mark.parametrize(
    ("name", "figures"),
    [
        ("one_sample", {"order", "distances", "pace"} | POINTS),
        ("constant_inputs", SHARED | POINTS),
        ("warming_up", SHARED - {"distances"} | {"slice-0-0", "slice-1-0"}),
        ("two_inputs", SHARED | POINTS | {"slice-0-0", "slice-1-0"}),
        ("tuned_for_life", SHARED | POINTS | {"slice-0-0", "slice-1-0"}),
        ("one_input", SHARED | POINTS | {"slice-0-0"}),
        ("forty_inputs", SHARED | POINTS | {f"slice-{d}-0" for d in range(28, 40)}),
        (
            "three_outputs",
            SHARED | POINTS | {f"slice-{d}-{k}" for d in range(2) for k in range(3)},
        ),
    ],
)
def test_every_figure_that_has_data_is_drawn(name, figures):
    assert Outline(page.page(STREAMS[name]())).figures == figures


def test_decisions_of_the_model_are_listed():
    summary = tuned_for_life()
    text = page.page(summary)
    assert "What it decided" in text
    heaviest, weight = max(summary.model.weights.items(), key=lambda pair: pair[1])
    assert f"{heaviest} carries the most weight" in text
    assert f"<td>{100 * weight:.1f} %</td>" in text
    last = summary.model.history[-1]
    assert last.what in text
    assert f"{last.position:,}" in text
    assert "What it decided" not in page.page(one_input())


def test_lengthscales_of_a_model_that_finds_its_units_are_in_those_of_the_data():
    summary = tuned_for_life()
    found = summary.settings.lengthscales
    assert found.shape == (2,)
    assert 100 < found[1] / found[0] < 10_000
    np.testing.assert_allclose(found, summary.model.lengthscales)
    assert summary.settings.noise[0] == pytest.approx(summary.model.noise)


def test_names_are_escaped():
    outline = Outline(page.page(unfriendly_names(), title="<b>" + EVIL[0]))
    assert not {"b", "script", "img"} & {tag for tag, _ in outline.elements}
    assert all(name in outline.text for name in EVIL)
    assert "<b><script>alert(1)</script>" in outline.text


def test_a_page_of_an_empty_stream_says_so():
    model = pogp.POG(pogp.RBF(), 0.1)
    outline = Outline(page.page(Summary.of(Journal.start(), model, None, "power")))
    assert "Nothing was learned yet." in outline.text
    assert outline.figures == set()


# ---- what is written


def test_the_page_is_written_whole_or_not_at_all(tmp_path):
    summary, path = two_inputs(), tmp_path / "out.html"
    path.write_text("before")
    for wrong in ({"names": ["a"]}, {"target": ["a", "b"]}):
        with pytest.raises(ValueError, match=r"must be .* one for each .* got \['a'"):
            page.write(path, summary.journal, summary.model, **wrong)
    assert path.read_text() == "before"
    page.write(path, summary.journal, summary.model, names=["a", "b"], target="c", title="T")
    assert path.read_text(encoding="utf-8") == page.page(
        Summary.of(summary.journal, summary.model, ["a", "b"], "c"), "T"
    )
    assert list(tmp_path.iterdir()) == [path]


def test_the_headline_has_the_numbers_of_the_journal_and_the_model():
    summary = STREAMS["two_inputs"]()
    recent = summary.journal.recent()
    text = prose.headline(summary)
    learned = "Learned 1,500 samples of power from 2 inputs."
    assert text.startswith(f"{learned} Keeps {summary.model.size} points (")
    assert f"Of the last {recent.samples} samples" in text
    assert f"{100 * recent.coverage(0.95)[0]:.1f} % fell within their 95 % band" in text
    assert f"mean squared error is {100 * recent.error[0]:.2f} % of the variance." in text
    assert "Still collecting samples for tuning" in prose.headline(STREAMS["warming_up"]())


def test_settings_and_lengthscales_are_in_the_users_units():
    X, y = smooth_2d(300)
    model = pogp.SelfTuning("pog", scale=True, warmup=100, max_size=30, budget=0.01)
    summary = subject_of(model, 1000 * X + 7, 50 * y - 3, ["a", "b"])
    spread = np.std(1000 * X[:100], axis=0)
    expected = model.kernel.lengthscale * spread
    np.testing.assert_allclose(summary.settings.lengthscales, expected, rtol=1e-12)
    variance = np.var(50 * y[:100])
    assert summary.settings.noise[0] == pytest.approx(model.noise * variance)
    assert summary.settings.signal[0] == pytest.approx(model.kernel.variance * variance)
    text = page.page(summary)
    for name, value in (
        ("model", "POG"),
        ("kernel", "RBF"),
        ("noise variance, y", number(model.noise * variance)),
        ("budget", "Constant(eps=0.01)"),
        ("max size", "30"),
        ("a", number(expected[0])),
    ):
        assert f'<th scope="row">{name}</th><td>{value}</td>' in text


@pytest.mark.parametrize(
    ("kernel", "family", "scales"),
    [
        (pogp.RBF([1.0, 9.0]) * pogp.Matern32(2.0), "(RBF * Matern32)", [1.0, 2.0]),
        (pogp.RBF(3.0), "RBF", [3.0, 3.0]),
    ],
)
def test_of_joined_kernels_the_shorter_lengthscale_counts(kernel, family, scales):
    X, y = smooth_2d(50)
    facts = subject_of(pogp.POG(kernel, 0.1), X, y).settings
    assert facts.kernel == family
    np.testing.assert_allclose(facts.lengthscales, scales)
    assert subject_of(pogp.POG(lambda A, B: A @ B.T, 0.1), X, y).settings.lengthscales is None


# ---- words are chosen by numbers


def told(errors, variances=1.0, size=10.0, removed=0.0, scale=1.0):
    """The segments of a stream of which everything is known: y = 0 ± scale, errors as given."""
    n = len(errors)
    signs = np.where(np.arange(n) % 2, scale, -scale)
    records = blank(n)
    records[:, 0], records[:, 1] = signs - errors, variances
    records[:, 2], records[:, 3], records[:, 4] = size, removed, 0.001 * np.asarray(removed)
    journal = Journal.start()
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
        "The mean squared error went from 25 % of the variance of the targets over the first 831 "
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


def test_a_model_at_its_cap_has_not_settled():
    full = told(np.zeros(4000), size=np.minimum(np.arange(4000), 50), removed=1.0)
    text = prose.of_cost(full, cap=50, budget=Constant(1e-4))
    assert text.startswith("The model order is at its cap of 50, since about sample 9")
    assert "The cap made each step cost 10 times the budget lately." in text


def test_an_error_without_a_variance_is_absolute():
    journal = told(np.full(100, 0.5), scale=0.0)
    text = prose.of_error(journal.segments(), journal.recent())
    assert text == (
        "The mean squared error went from 0.25 in squared units over the first 49 samples to 0.25 "
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
    bars = marks(stream_figures.ranks(recent), "bar")
    heights = np.array([float(bar.get("height")) for bar in bars])
    cells = recent.cells[0].reshape(20, 2).sum(axis=1)
    np.testing.assert_allclose(heights / heights.sum(), cells / cells.sum(), atol=1e-3)


def test_retained_points_are_drawn_where_and_when_they_are():
    summary = STREAMS["two_inputs"]()
    figure = retained.scatter(summary)
    dots = marks(figure, "dot")
    assert len(dots) == summary.model.size
    inputs = summary.model.dictionary[:, summary.order]
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
    assert summary.order == [1, 0]  # the shorter length-scale is the more relevant
    cuts = slices.cut(summary)
    assert [(each.input, each.output) for each in cuts] == [(1, 0), (0, 0)]
    medians = np.median(summary.journal.samples.inputs, axis=0)
    for each in cuts:
        for i in (0, 30, 60):
            x = medians.copy()
            x[each.input] = each.places[i]
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


# ---- in a real browser


@pytest.fixture(scope="module")
def browser():
    with opened() as browser:
        yield browser


def test_without_a_browser_the_tests_are_skipped_and_say_so(monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(pytest.skip.Exception, match="no browser: chromium and chromedriver"):
        opened().__enter__()


LOOKED_AT = ("two_inputs", "forty_inputs", "three_outputs", "unfriendly_names", "one_sample")


@pytest.mark.parametrize("name", LOOKED_AT)
def test_a_browser_finds_nothing_wrong(browser, tmp_path, name):
    summary, path = STREAMS[name](), tmp_path / "report.html"
    path.write_text(page.page(summary), encoding="utf-8")
    browser.open(path, PHONE)
    assert browser.count("svg") == len(Outline(page.page(summary)).figures) > 4
    for width in (PHONE, DESKTOP):
        browser.resize(width)
        assert browser.faults() == []
    assert browser.complaints() == browser.requests() == []


def test_the_dark_page_is_dark(browser, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(page.page(STREAMS["one_sample"]()), encoding="utf-8")
    shades = []
    for dark in (False, True):
        browser.open(path, dark=dark)
        shades.append(browser.background())
    assert shades == ["rgb(255, 255, 255)", "rgb(21, 24, 28)"]


BROKEN = """<!doctype html><title>Broken</title><body style="margin: 0">
<p style="width: 2000px">wide</p><p style="font-size: 9px">small</p>
<svg id="bad" viewBox="0 0 100 100" width="100" height="100" style="font-size: 12px">
<text x="5" y="20">left</text><text x="15" y="22">right</text><text x="90" y="60">outside</text>
</svg><img src="http://localhost:9/missing.png"><script>console.error("a complaint")</script>
"""


def test_what_is_wrong_with_a_page_is_found(browser, tmp_path):
    path = tmp_path / "broken.html"
    path.write_text(BROKEN)
    browser.open(path, PHONE)
    faults = "\n".join(browser.faults())
    for fault in (
        "the page is 2000 wide in a window of 360",
        '"left" and "right" overlap in bad',
        '"outside" sticks out of bad',
        "bad: 100 × 100, 0 marks",
        "missing.png was not drawn",
        '"small" is 9.0 px tall',
    ):
        assert fault in faults
    assert any("a complaint" in complaint for complaint in browser.complaints())
    assert browser.requests() == ["http://localhost:9/missing.png"]

"""The report of a stream: what it says against the model and the journal, and how it looks."""

import re
from functools import cache
from html.parser import HTMLParser

import numpy as np
import pytest

import pogp
from pogp.encoding import Encoder
from pogp.encoding.encoder import inputs_of
from pogp.report import page, prose
from pogp.report.axes import number
from pogp.report.journal import Journal
from pogp.report.markup import VOID
from pogp.report.summary import Summary

from ..browser import DESKTOP, PHONE, opened
from ..conftest import smooth_1d, smooth_2d

SHARED = {"error", "loss", "coverage", "reliability", "ranks", "order", "distances", "pace"}
POINTS = {"retained", "arrivals"}
ROOMS = ["hall", "WORKSHOP MW", "<b>lab</b>", *(f"the room number {i} of all" for i in range(9))]
EVIL = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>']


def follow(model, X, y, chunk=100):
    """The journal of a model that learns a stream."""
    journal = Journal()
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


def categories():
    """A table with a column of numbers, and one of more categories than an axis has room for."""
    rng = np.random.default_rng(0)
    rooms = np.minimum(rng.exponential(4.0, 300).astype(int), 11)
    load = rng.uniform(0, 5, 300)
    cells = [load, [ROOMS[room] for room in rooms]]
    encoder = Encoder.of(["load", "room"], cells)
    X = inputs_of(encoder.learn(cells), encoder.dimension)
    model = pogp.POG(pogp.RBF([5.0, 0.5, 0.5, 0.5, 0.5], 9.0), 0.01, max_size=40)
    journal = follow(model, X, np.sin(load) + rooms)
    return Summary.of_table(journal, model, encoder, "power", ["pogp", "learn", "t.csv"], {})


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
        categories,
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


def test_a_constant_target_is_said_to_be_constant():
    X, _ = smooth_2d(100)
    for value, text in ((7.0, "7"), (0.1, "0.1")):
        model = pogp.OnlineGP(max_size=20)
        told = prose.headline(subject_of(model, X, np.full(100, value), ["a", "b"]))
        assert told.endswith(f" y is always {text}.")


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
        ("categories", SHARED | POINTS | {"slice-0-0", "slice-1-0"}),
        (
            "three_outputs",
            SHARED | POINTS | {f"slice-{d}-{k}" for d in range(2) for k in range(3)},
        ),
    ],
)
def test_every_figure_that_has_data_is_drawn(name, figures):
    assert Outline(page.page(STREAMS[name]())).figures == figures


def test_decisions_of_the_model_are_listed():
    summary = STREAMS["tuned_for_life"]()
    text = page.page(summary)
    assert "Decisions of the model" in text
    heaviest, weight = max(summary.model.weights.items(), key=lambda pair: pair[1])
    assert f"most weight in the next prediction is {heaviest}, with" in text
    assert f"<td>{100 * weight:.1f} %</td>" in text
    last = summary.model.history[-1]
    assert last.what in text
    assert f"{last.position:,}" in text
    assert "Decisions of the model" not in page.page(STREAMS["one_input"]())


def test_lengthscales_of_a_model_that_finds_its_units_are_in_those_of_the_data():
    summary = STREAMS["tuned_for_life"]()
    found = summary.settings.lengthscales
    assert found.shape == (2,)
    assert 100 < found[1] / found[0] < 10_000
    np.testing.assert_allclose(found, summary.model.lengthscales)
    assert summary.settings.noise[0] == pytest.approx(summary.model.noise)


def test_names_are_escaped():
    outline = Outline(page.page(STREAMS["unfriendly_names"](), title="<b>" + EVIL[0]))
    assert not {"b", "script", "img"} & {tag for tag, _ in outline.elements}
    assert all(name in outline.text for name in EVIL)
    assert "<b><script>alert(1)</script>" in outline.text


def test_a_page_of_an_empty_stream_says_so():
    model = pogp.POG(pogp.RBF(), 0.1)
    outline = Outline(page.page(Summary.of(Journal(), model, None, "power")))
    assert "Nothing was learned yet." in outline.text
    assert outline.figures == set()


# ---- what is written


def test_names_must_be_as_many_as_inputs_and_outputs():
    summary = STREAMS["two_inputs"]()
    for names, target in ((["a"], "y"), (None, ["a", "b"])):
        with pytest.raises(ValueError, match=r"must be .* one for each .* got \['a'"):
            Summary.of(summary.journal, summary.model, names, target)


def test_the_page_is_written_as_a_whole(tmp_path):
    summary, path = STREAMS["two_inputs"](), tmp_path / "out.html"
    path.write_text("before")
    page.write(path, summary, "T")
    assert path.read_text(encoding="utf-8") == page.page(summary, "T")
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


def test_the_headline_says_what_a_few_outliers_do():
    X, y = smooth_2d(600)
    model = pogp.OnlineGP(max_size=60)
    assert "surprise" not in prose.headline(subject_of(model.copy(), X, y, ["a", "b"]))
    y[[580, 590]] += 50.0
    summary = subject_of(model, X, y, ["a", "b"])
    recent, ordinary = summary.journal.recent(), summary.journal.recent_ordinary()
    with_them, without = recent.rmse[0, 0], ordinary.rmse[0, 0]
    assert without < 0.2 * with_them
    share = 100 * without**2 / np.var(np.delete(y, [580, 590]))
    left_out = f"error is {number(share)} % of the variance (2 surprises left out)."
    roots = f"{number(without)} without their 2 surprises and {number(with_them)} with them."
    error = f"The root mean squared error of these {prose.predicted(recent)} is"
    assert f"{left_out} {error} {roots}" in prose.headline(summary)
    y[[100, 580, 590]] += [90.0, -50.0, -50.0]
    text = prose.headline(subject_of(pogp.OnlineGP(max_size=60), X, y, ["a", "b"]))
    assert re.search(
        r"error is [\d.]+ % of the variance \(\d surprises? of the stream left out\)\.$", text
    )
    text = page.page(summary)
    for name, value in (
        ("error, % of variance", share),
        ("root mean squared error", without),
        ("the same with surprises", with_them),
    ):
        row = f'<th scope="row">{name}</th><td>[^<]*</td><td>{number(value)}</td>'
        assert re.search(row, text)
    sentence = prose.of_error(summary.journal.ordinary(), ordinary)
    assert f"to {number(share)} % over the last 64 samples. Errors and log losses" in sentence
    assert "Errors and log losses are without 2 surprises." in text


def test_a_verdict_without_a_command_gives_no_advice():
    X, y = smooth_2d(200)
    text = page.page(subject_of(pogp.OnlineGP(max_size=20), X, 1e15 + y, ["a", "b"]))
    assert "Subtract a constant" in text
    assert "Try:" not in text


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
        ("noise deviation, y", number(np.sqrt(model.noise * variance))),
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


# ---- in a real browser


def test_without_a_browser_the_tests_are_skipped_and_say_so(monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(pytest.skip.Exception, match="no browser: chromium and chromedriver"):
        opened().__enter__()


LOOKED_AT = ("two_inputs", "forty_inputs", "three_outputs", "unfriendly_names", "categories")


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


def test_defects_of_a_page_are_found(browser, tmp_path):
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

"""The report of a stream as one self-contained page: no scripts, nothing loaded from elsewhere."""

from importlib.resources import files
from os import PathLike

from pogp.files import container
from pogp.models.online import OnlineGP
from pogp.report import prose, retained, slices, stream_figures
from pogp.report.advice import Verdict
from pogp.report.axes import number
from pogp.report.journal import Journal
from pogp.report.markup import Markup, element, joined, legend, table
from pogp.report.segments import Segments
from pogp.report.style import DARK, LIGHT
from pogp.report.summary import OUTPUTS, Summary
from pogp.report.svg import Figure
from pogp.report.verdicts import verdicts

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""A policy by which the browser loads nothing from elsewhere."""


FAINT = 0.005
"""Members with less weight are not listed."""
EVENTS = 12
"""The most decisions that are listed, the latest ones."""


def write(path: str | PathLike[str], summary: Summary, title: str | None = None) -> None:
    """Write the report on a summary, atomically."""
    container.replace(path, [page(summary, title).encode()])


def page(summary: Summary, title: str | None = None) -> str:
    """Return the report as HTML."""
    heading = title or f"{prose.listed(summary.targets)}, learned online"
    body: list[Markup | None] = [element("h1", heading)]
    if summary.journal.seen:
        body.append(element("p", _text(prose.headline(summary)), class_="lede"))
        body.append(_on_verdicts(verdicts(summary)))
        body += _on_predictions(summary)
        body += [_on_cost(summary), _on_slices(summary), _on_points(summary)]
        if isinstance(summary.model, OnlineGP):
            body.append(_on_decisions(summary, summary.model))
    else:
        body.append(element("p", "Nothing was learned yet.", class_="lede"))
    tables = summary.settings.tables(summary.targets, summary.ranking)
    body.append(_section("Settings", None, *tables))
    content = element("body", element("main", *body))
    return "<!doctype html>\n" + element("html", _head(heading), content, lang="en")


def _on_verdicts(found: list[Verdict]) -> Markup | None:
    """Return the verdicts as a list."""
    items = (element("li", _text(each.sentence), *_advice(each.command)) for each in found)
    return element("ul", *items, class_="verdicts") if found else None


def _command(command: str) -> Markup:
    """Return a command that wraps between its words only, not after a hyphen."""
    words = (part for word in command.split(" ") for part in (" ", element("span", word)))
    return element("code", *list(words)[1:])


def _advice(command: str) -> tuple[str, Markup] | tuple[()]:
    return (" Try: ", _command(command)) if command else ()


def _on_predictions(summary: Summary) -> list[Markup]:
    segments = summary.journal.ordinary()
    drawn = _drawn(segments).with_predictions()
    if len(drawn) == 0:
        return [_section("Error", "No sample was predicted before it was learned yet.")]
    recent, everything = summary.journal.recent_ordinary(), segments.joined()
    return [
        _section(
            "Error",
            prose.of_error(segments, recent),
            stream_figures.error(drawn),
            stream_figures.loss(drawn),
            _scores(summary.journal, summary.targets),
        ),
        _section(
            "Coverage and calibration",
            prose.of_calibration(recent),
            stream_figures.coverage(drawn),
            stream_figures.reliability(everything, recent),
            stream_figures.ranks(recent),
        ),
    ]


def _on_cost(summary: Summary) -> Markup:
    drawn = _drawn(summary.journal.segments())
    return _section(
        "Model order and cost",
        prose.of_cost(summary.journal, summary.settings.cap, summary.settings.budget),
        stream_figures.order(drawn, summary.settings.cap),
        stream_figures.distances(drawn, summary.settings.budget),
        stream_figures.pace(drawn),
    )


def _on_slices(summary: Summary) -> Markup:
    cuts = slices.cut(summary)
    if not cuts:
        return _section("Slices", "No input has varied yet.")
    marks = [("blue", "mean"), ("blue band", "95 % band")]
    if not all(each.variable.codes for each in cuts):
        marks.append(("vermillion rug", "retained points"))
    if slices.shows_samples(summary):
        marks.append(("grey dots", "samples"))
    text = prose.of_slices(len({each.variable.name for each in cuts}), summary)
    return _section("Slices", joined(_text(text), legend(marks)), *slices.draw(cuts, summary))


def _on_points(summary: Summary) -> Markup:
    if summary.model.size == 0:
        return _section("Retained points", "There are none yet.")
    return _section(
        "Retained points",
        prose.of_points(summary),
        retained.scatter(summary),
        retained.arrivals(summary),
        retained.listing(summary),
    )


def _on_decisions(summary: Summary, model: OnlineGP) -> Markup:
    """Return the members with the most weight, and the decisions with their reasons."""
    weights = sorted(model.weights.items(), key=lambda pair: -pair[1])
    heavy = [(name, [prose.percent(weight)]) for name, weight in weights if weight >= FAINT]
    events = model.history[-EVENTS:]
    rows = [
        (
            prose.places(summary.journal, event.position),
            [event.what, prose.decision(event.why, summary.inputs)],
        )
        for event in reversed(events)
    ]
    decided = table("Latest decisions", rows, ("after", "what", "why"), prose=True)
    return _section(
        "Decisions of the model",
        prose.of_decisions(weights[0][0], weights[0][1], len(model.history)),
        table("Weights in the next prediction", heavy, ("member", "weight")),
        decided if rows else None,
    )


def _drawn(segments: Segments) -> Segments:
    """Join segments until they are long enough for meaningful means, also of short streams."""
    return segments.at_most(max(int(2 * segments.samples**0.5), 1))


def _scores(journal: Journal, targets: list[str]) -> Markup:
    """Return the scores of the first, the last and all samples as a table."""
    recent = journal.recent().samples
    parts, with_outliers = (
        (each.first(recent), each.last(recent), each.joined())
        for each in (journal.ordinary(), journal.segments())
    )
    unit, factor = ("% of variance", 100) if parts[0].relative else ("squared", 1)
    rows = [(f"error, {unit}", [number(factor * part.error[0]) for part in parts])]
    if len(targets) == 1:
        rows.append(("root mean squared error", [number(part.rmse[0, 0]) for part in parts]))
        if parts[-1].left_out[0]:
            roots = [number(part.rmse[0, 0]) for part in with_outliers]
            rows.append(("the same with surprises", roots))
    else:
        errors = [factor * part.errors[0] for part in parts]
        names = enumerate(targets[:OUTPUTS])
        rows += [(f"of {name}", [number(error[k]) for error in errors]) for k, name in names]
    rows.append(("log loss, nats", [number(part.loss[0]) for part in parts]))
    for level in (0.5, 0.8, 0.95):
        shares = [prose.percent(part.coverage(level)[0]) for part in parts]
        rows.append((f"in {100 * level:.0f} % band", shares))
    rows.append(("µs per sample", [number(1e6 * part.mean("seconds")[0]) for part in parts]))
    rows.append(("samples", [number(part.samples, 7) for part in parts]))
    return table("In numbers", rows, ("", "first", "recent", "all"))


def _section(title: str, text: str | None, *content: Figure | Markup | None) -> Markup:
    """Return a section; figures and tables stand side by side where there is room."""
    parts = (part.markup() if isinstance(part, Figure) else part for part in content)
    return element(
        "section",
        element("h2", title),
        element("div", _text(text), class_="text") if text else None,
        element("div", *parts, class_="figures") if content else None,
    )


def _text(text: str) -> str:
    """Return words in which no line breaks before a per cent sign or within an option."""
    kept = text.replace(" %", "\N{NO-BREAK SPACE}%")
    return type(text)(kept.replace(" --", " -\N{WORD JOINER}-\N{WORD JOINER}"))


def _head(title: str) -> Markup:
    style = (files("pogp.report") / "page.css").read_text(encoding="utf-8")
    light, dark = ("".join(f"--{k}:{v};" for k, v in colours.items()) for colours in (LIGHT, DARK))
    colours = f":root{{{light}}}\n@media (prefers-color-scheme: dark){{:root{{{dark}}}}}\n"
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("link", rel="icon", href="data:,"),
        element("title", title),
        element("style", Markup(colours + style)),
    )

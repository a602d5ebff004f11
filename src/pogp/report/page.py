"""The report of a stream as one self-contained page: no scripts, nothing loaded from elsewhere."""

from collections.abc import Sequence
from importlib.resources import files
from os import PathLike

from pogp.files import container
from pogp.models.base import Model
from pogp.models.online import OnlineGP
from pogp.report import over_time, prose, reliability, retained, slices
from pogp.report.axes import number
from pogp.report.facts import OUTPUTS
from pogp.report.journal import Journal
from pogp.report.markup import Markup, element, joined, legend, table
from pogp.report.stretches import Stretches
from pogp.report.style import DARK, LIGHT
from pogp.report.subject import Subject
from pogp.report.svg import Figure
from pogp.report.verdicts import Verdict, verdicts

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""The browser itself sees to it that the page is self-contained."""


FAINT = 0.005
"""Members with less weight are not listed."""
EVENTS = 12
"""The latest so many decisions are listed."""


def write(
    path: str | PathLike[str],
    journal: Journal,
    model: Model,
    *,
    names: Sequence[str] | None = None,
    target: str | Sequence[str] = "y",
    title: str | None = None,
) -> None:
    """Write the report on a stream and on the model that learned it, atomically.

    `names` are those of the inputs, `target` that of the output, or one for each of several.
    """
    write_subject(path, Subject.of(journal, model, names, target), title)


def write_subject(path: str | PathLike[str], subject: Subject, title: str | None = None) -> None:
    """Write the report on a subject, atomically."""
    container.replace(path, [page(subject, title).encode()])


def page(subject: Subject, title: str | None = None) -> str:
    """Return the report as HTML."""
    heading = title or f"{prose.listed(subject.targets)}, learned online"
    body: list[Markup | None] = [element("h1", heading)]
    if subject.journal.seen:
        body.append(element("p", _text(prose.headline(subject)), class_="lede"))
        body.append(_on_verdicts(verdicts(subject)))
        body += _on_predictions(subject)
        body += [_on_cost(subject), _on_slices(subject), _on_points(subject)]
        if isinstance(subject.model, OnlineGP):
            body.append(_on_decisions(subject.model))
    else:
        body.append(element("p", "Nothing was learned yet.", class_="lede"))
    settings = subject.facts.tables(subject.names, subject.targets, subject.relevance)
    body.append(_section("Settings", None, *settings))
    content = element("body", element("main", *body))
    return "<!doctype html>\n" + element("html", _head(heading), content, lang="en")


def _on_verdicts(found: list[Verdict]) -> Markup | None:
    """Return what is wrong and what to try, as a list."""
    items = (
        element("li", _text(each.sentence), " Try: ", element("code", each.command))
        for each in found
    )
    return element("ul", *items, class_="verdicts") if found else None


def _on_predictions(subject: Subject) -> list[Markup]:
    drawn, stretches = _drawn(subject.journal).with_predictions(), subject.journal.stretches()
    if len(drawn) == 0:
        return [_section("Error", "No sample was predicted before it was learned yet.")]
    recent, everything = subject.journal.recent(), stretches.joined()
    return [
        _section(
            "Error",
            prose.of_error(stretches, recent),
            over_time.error(drawn),
            over_time.loss(drawn),
            _scores(stretches.first(recent.samples), recent, everything, subject.targets),
        ),
        _section(
            "Coverage and calibration",
            prose.of_calibration(recent),
            over_time.coverage(drawn),
            reliability.reliability(everything, recent),
            reliability.ranks(recent),
        ),
    ]


def _on_cost(subject: Subject) -> Markup:
    drawn = _drawn(subject.journal)
    return _section(
        "What it keeps, and what that costs",
        prose.of_cost(subject.journal, subject.facts.cap, subject.facts.budget),
        over_time.order(drawn, subject.facts.cap),
        over_time.distances(drawn, subject.facts.budget),
        over_time.pace(drawn),
    )


def _on_slices(subject: Subject) -> Markup:
    cuts = slices.cut(subject)
    if not cuts:
        return _section("Slices", "No input has varied yet.")
    marks = [("blue", "mean"), ("blue band", "95 % band"), ("vermillion rug", "retained points")]
    if slices.shows_samples(subject):
        marks.append(("grey dots", "samples"))
    text = prose.of_slices(len({each.input for each in cuts}), len(subject.order))
    return _section("Slices", joined(_text(text), legend(marks)), *slices.draw(cuts, subject))


def _on_points(subject: Subject) -> Markup:
    if subject.model.size == 0:
        return _section("Retained points", "There are none yet.")
    return _section(
        "Retained points",
        prose.of_points(subject),
        retained.scatter(subject),
        retained.arrivals(subject),
        retained.listing(subject),
    )


def _on_decisions(model: OnlineGP) -> Markup:
    """Return which members carry the weight now, and what was decided when and why."""
    weights = sorted(model.weights.items(), key=lambda pair: -pair[1])
    heavy = [(name, [prose.percent(weight)]) for name, weight in weights if weight >= FAINT]
    events = model.history[-EVENTS:]
    rows = [(f"{event.position:,}", [event.what, event.why]) for event in reversed(events)]
    decided = table("Latest decisions", rows, ("after", "what", "why"), prose=True)
    return _section(
        "What it decided",
        prose.of_decisions(weights[0][0], weights[0][1], len(model.history)),
        table("Weights in the next prediction", heavy, ("member", "weight")),
        decided if rows else None,
    )


def _drawn(journal: Journal) -> Stretches:
    """Return stretches long enough for their means to say something, of short streams too."""
    return journal.stretches().at_most(max(int(2 * journal.seen**0.5), 1))


def _scores(
    first: Stretches, recent: Stretches, everything: Stretches, targets: list[str]
) -> Markup:
    """Return what was measured at first, of late and in all, as a table."""
    parts = (first, recent, everything)
    unit, factor = ("% of variance", 100) if everything.relative else ("squared", 1)
    rows = [(f"error, {unit}", [number(factor * part.error[0]) for part in parts])]
    if len(targets) == 1:
        rows.append(("root mean squared error", [number(part.rmse[0, 0]) for part in parts]))
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
    return table("In numbers", rows, ("", "at first", "of late", "all"))


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
    """Return words in which no line breaks before a per cent sign."""
    return type(text)(text.replace(" %", "\N{NO-BREAK SPACE}%"))


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

"""Tables of the comparison, as Markdown for the page and as text for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchmarks.peers.readings import MAIN, Comparison, Outcomes, Row, outcomes, overall
from benchmarks.peers.registry import OURS, PEERS
from experiments.drawing.tables import NONE, markdown, significant
from experiments.readings.estimates import number

HEAD = (
    "peer",
    "SMSE",
    "NLPD",
    "CRPS",
    "in 95 % band",
    "µs, mean",
    "median",
    "99.9 %",
    "maximum",
    "peak MB",
    "saved kB",
    "useful after",
)


def scores(found: Comparison) -> str:
    """Return the table of one stream in Markdown, and below it why some failed."""
    table = markdown(HEAD, [_marked(row, cells(row)) for row in found.rows])
    failed = [row for row in found.rows if row.failure is not None]
    reasons = [f"- {_name(row.case)} failed: {row.failure}." for row in failed]
    return "\n\n".join([table, "\n".join(reasons)]) if reasons else table


def text(found: Comparison) -> str:
    """Return the same table as text, its columns aligned."""
    rows = [HEAD, *(cells(row) for row in found.rows)]
    finished = [row for row in rows if len(row) == len(HEAD)]
    widths = [max(len(row[column]) for row in finished) for column in range(len(HEAD))]
    widths[0] = max(len(row[0]) for row in rows)
    lines = []
    for row in rows:
        first, *others = row
        aligned = (cell.rjust(width) for cell, width in zip(others, widths[1:], strict=False))
        lines.append("  ".join([first.ljust(widths[0]), *aligned]))
    lines.insert(1, "─" * len(lines[0]))
    return "\n".join(lines)


def cells(row: Row) -> list[str]:
    """Return the cells of a row, or its name and why it failed."""
    if row.failure is not None:
        return [row.peer.label, f"failed: {row.failure}"]
    return [
        row.peer.label,
        _estimated(row, "smse", 4),
        _estimated(row, "nlpd", 2),
        _estimated(row, "crps", 3) + ("" if row.estimate("nlpd") else "*"),
        _share(row),
        *(_significant(row, name) for name in ("mean_us", "median_us", "p999_us", "max_us")),
        _plain(row, "peak_megabytes", 1.0),
        _plain(row, "saved_bytes", 1e-3),
        _useful(row),
    ]


def winners(found: Sequence[Comparison]) -> str:
    """Return who has the lowest error on each stream, and how OnlineGP stands beside it."""

    def line(each: Comparison) -> list[str]:
        behind, place, rivals, slower = each.behind(), each.place(), each.rivals(), each.slower()
        return [
            each.title,
            _name(each.first.case),
            number(each.first.mean("smse"), 4),
            NONE if place is None else str(place),
            NONE if behind is None else number(behind, 2),
            _name(rivals[0].case) if rivals else "none",
            NONE if slower is None else number(slower, 1),
        ]

    head = ["stream", "lowest error", "SMSE", "OnlineGP's place", "OnlineGP ÷ lowest"]
    head += ["fastest other of comparable error", "OnlineGP's time ÷ its"]
    return markdown(head, map(line, found))


def leaders(found: Sequence[Comparison]) -> str:
    """Return who leads on each stream by the other measures, with OnlineGP's figure beside it."""

    def cell(each: Comparison, row: Row | None, name: str, show: Callable[[float], str]) -> str:
        online = each.row(MAIN)
        if row is None:
            return NONE
        lead = f"{_name(row.case)} {show(row.mean(name))}"
        return lead if row is online or online is None else f"{lead} ({show(online.mean(name))})"

    def line(each: Comparison) -> list[str]:
        return [
            each.title,
            cell(each, each.lowest("nlpd"), "nlpd", lambda value: number(value, 2)),
            cell(each, each.lowest("crps"), "crps", lambda value: number(value, 3)),
            cell(each, each.best_band, "inside", lambda value: f"{number(100 * value, 1)} %"),
            cell(each, each.lowest("p999_us"), "p999_us", significant),
            cell(each, each.lowest("saved_bytes"), "saved_bytes", lambda v: number(v / 1e3, 1)),
        ]

    head = ["stream", "lowest NLPD", "lowest CRPS", "band closest to 95 %"]
    return markdown([*head, "99.9 % of samples in µs", "smallest saved, kB"], map(line, found))


def summary(found: Sequence[Comparison]) -> str:
    """Return all peers over all streams, those that came to the end of too few last."""
    together = overall(found)
    order = [each.case for each in together]
    means = {
        each.case: [number(each.error, 2), significant(each.microseconds)] for each in together
    }

    def place(each: Outcomes) -> tuple[int, int]:
        return (order.index(each.case) if each.case in order else len(order), -each.finished)

    def line(each: Outcomes) -> list[str]:
        counts = (each.finished, each.failed, each.absent)
        return [
            _name(each.case),
            *means.get(each.case, [NONE, NONE]),
            *(str(count) if count else NONE for count in counts),
        ]

    head = ["peer", "error ÷ lowest", "µs per sample", "came to the end", "failed", "not run"]
    return markdown(head, map(line, sorted(outcomes(found), key=place)))


def peers(rows: Sequence[Row]) -> str:
    """Return who takes part, with versions and settings."""
    head = ["peer", "version", "settings"]
    table = markdown(
        head,
        ([_name(row.case), row.versions or NONE, row.peer.settings] for row in rows),
    )
    return table.replace("|:---|---:|---:|", "|:---|:---|:---|")


def _marked(row: Row, line: list[str]) -> list[str]:
    """Return the cells with our own names in bold; a failure has no numbers."""
    others = line[1:] if row.failure is None else ["failed", *[NONE] * (len(HEAD) - 2)]
    return [_name(row.case), *others]


def _name(case: str) -> str:
    label = PEERS[case].label
    return f"**{label}**" if case in OURS else label


def _estimated(row: Row, name: str, decimals: int) -> str:
    found = row.estimate(name)
    if found is None:
        return NONE
    return found.text(decimals) if found.mean < 100 else f"{found.mean:.3g}"


def _share(row: Row) -> str:
    found = row.estimate("inside")
    return NONE if found is None else f"{number(100 * found.mean, 1)} %"


def _significant(row: Row, name: str) -> str:
    return significant(row.mean(name))


def _plain(row: Row, name: str, factor: float) -> str:
    found = row.estimate(name)
    if found is None:
        return NONE
    value = found.mean * factor
    return number(value, 0 if value >= 10 else 1)


def _useful(row: Row) -> str:
    """Return samples and seconds until the first useful prediction."""
    samples, seconds = row.estimate("useful_samples"), row.estimate("useful_seconds")
    if samples is None or seconds is None:
        return "never"
    return f"{samples.mean:,.0f} ({seconds.mean:.1f} s)"

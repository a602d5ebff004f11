"""Verdicts on changes of a stream: of its level, its relation, its noise and its sensors."""

import math

import numpy as np

from pogp.models.online import OnlineGP
from pogp.online.stuck import STUCK
from pogp.report import prose
from pogp.report.advice import Verdict, advised, follow_changes, other_method
from pogp.report.axes import number
from pogp.report.changes import (
    change_point,
    failed_inputs,
    has_new_inputs,
    is_noise,
    level_change,
    level_drift,
)
from pogp.report.journal import OUTLIER
from pogp.report.segments import POOR
from pogp.report.summary import Summary
from pogp.report.surprises import abrupt_changes

RISE = 1.5
"""An error that rose by this factor, and stayed there, is called drift."""


def shifted(summary: Summary) -> Verdict | None:
    """Find a jump of the target that the inputs do not explain, in the same relation otherwise."""
    found = level_change(summary)
    if found is None:
        return None
    side = "higher" if found.jump > 0 else "lower"
    journal = summary.journal
    surprises = abrupt_changes(journal, summary.model)
    firsts = (each.first for each in surprises if found.includes(each, journal.width))
    place = prose.places(journal, next(firsts, found.since))
    return advised(
        summary,
        "shifted",
        f"The level of {found.target} changed around {place}: since then it is "
        f"{number(abs(found.jump))} {side} than the same inputs gave before.",
        *follow_changes(summary),
    )


def drifted(summary: Summary) -> Verdict | None:
    """Find an error that rose after the model had learned, and stayed high.

    If the present model predicts the samples of before as well as they were predicted then, the
    relation is the same, and the noise has grown; unless an input failed at that time.
    """
    segments = summary.journal.ordinary().with_predictions().at_most(64)
    start = max(len(segments) // 5, 1)
    errors = segments.error[start:]
    split = change_point(errors)
    if split is None or not segments.relative or level_change(summary) is not None:
        return None
    before, after = (float(np.median(part)) for part in (errors[:split], errors[split:]))
    if before > POOR or after < RISE * before:
        return None
    since = int(segments.ends[start + split - 1])
    failed = failed_inputs(summary, since, int(segments.counts[0]))
    if not failed and has_new_inputs(summary, since):
        return None
    grew = (
        f"around {prose.places(summary.journal, since)}: the squared error was "
        f"{number(100 * before)} % of the variance before, and is {number(100 * after)} % since "
        "then"
    )
    if failed:
        return Verdict("failed", f"{failed} since {grew}.", "")
    if is_noise(summary, since, math.sqrt(before * after)):
        sentence = f"The noise of the target grew {grew}. The inputs predict its mean as before."
        options = other_method(summary, "--report", "report.html")
        return advised(summary, "noisier", sentence, *options)
    return advised(
        summary,
        "drifted",
        f"The relation between inputs and target changed {grew}.",
        *follow_changes(summary),
    )


def drifting(summary: Summary) -> Verdict | None:
    """Find a target that drifts slowly, so that the model can follow."""
    found = None if level_change(summary) is not None else level_drift(summary)
    if found is None or drifted(summary) is not None:
        return None
    (target, drift), side = found, "higher" if found[1] > 0 else "lower"
    return advised(
        summary,
        "drifting",
        f"{target} drifted: at the end it is about {number(abs(drift))} {side} than the same "
        "inputs gave at the beginning.",
        *follow_changes(summary),
    )


def changed(summary: Summary) -> Verdict | None:
    """Find abrupt changes that the model has adapted to, and that no other verdict explains."""
    journal, level = summary.journal, level_change(summary)
    found = abrupt_changes(journal, summary.model)
    if level is not None:
        found = [each for each in found if not level.includes(each, journal.width)]
    if not found or drifted(summary) is not None:
        return None
    relation, others = (
        [each.first for each in found if each.of_relation == of_relation]
        for of_relation in (True, False)
    )
    sentences = []
    if relation:
        sentences.append(
            "The relation between inputs and target changed around "
            f"{prose.places(journal, *relation)}. The model has learned the rows since then anew."
        )
    if others:
        sentences.append(
            f"The target changed abruptly around {prose.places(journal, *others)}: a new level, a "
            "new relation to the inputs, or a fault that lasted several rows."
        )
    options = other_method(summary, "--report", "report.html")
    return advised(summary, "changed", " ".join(sentences), *options)


def outlying(summary: Summary) -> Verdict | None:
    """Find a few targets far outside what was predicted; not those of a change."""
    journal = summary.journal
    segments = journal.segments()
    count, samples = segments.few_outliers, float(segments.predicted.sum())
    if count:
        count -= sum(each.size for each in abrupt_changes(journal, summary.model))
    if count < 3:
        return None
    file = summary.written.get("--out")
    if file is None:
        where = "--out rows.csv lists them"
    else:
        named = "" if file == "-" else f" of {file}"
        where = f"most of them are the lines{named} with a surprise above 5"
    return advised(
        summary,
        "outlying",
        f"{count:,} of {int(samples):,} targets are outliers, more than {OUTLIER:g} deviations "
        f"from their predictions; {where}.",
        "--out",
        "rows.csv",
    )


def stuck(summary: Summary) -> Verdict | None:
    """Find targets that repeated although the inputs said that they should not."""
    if not isinstance(summary.model, OnlineGP):
        return None
    journal, history = summary.journal, summary.model.history
    starts = [
        event.position + 1
        for event in history
        if event.what == STUCK and event.position >= journal.after
    ]
    if not starts:
        return None
    again = f", and {prose.counted(len(starts) - 1, 'more time')}" if len(starts) > 1 else ""
    sentence = (
        f"The target repeated exactly around {prose.places(journal, starts[0])}{again}, although "
        "the inputs changed: its sensor may have been stuck. Rows were not learned once this was "
        "found; --out marks them as alarms."
    )
    return advised(summary, "stuck", sentence, "--out", "rows.csv")

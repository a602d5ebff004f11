"""The commands that verdicts advise: the one that learned a stream, with other options."""

import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from pogp.report.summary import Summary

OF_THE_METHOD = ("--budget", "--forgetting", "--kernel", "--warmup", "--option")
"""Options that another method may not have."""


@dataclass(frozen=True)
class Verdict:
    """A finding, as a sentence, and the command that may help; empty if none does."""

    name: str
    sentence: str
    command: str

    def __str__(self) -> str:
        return f"{self.sentence} Try: {self.command}" if self.command else self.sentence


def advised(
    summary: Summary, name: str, sentence: str, *options: str, without: tuple[str, ...] = ()
) -> Verdict:
    """Return a verdict whose command is the one that learned the stream, with other options.

    It is empty if the command wrote the file that they ask for.
    """
    if options[0] in summary.written:
        return Verdict(name, sentence, "")
    without += tuple(word for word in options if word.startswith("--"))
    if "--method" in options:
        without += OF_THE_METHOD
    if _continued(summary) and ("--method" in options or "--columns" in options):
        without += ("--from",)  # its model has another method or other columns
        if "--columns" not in options and not {"--columns", "--exclude"} & set(summary.command):
            options += with_columns(summary, list(dict.fromkeys(summary.columns)))
    kept = words_without(summary.command, without)
    return Verdict(name, sentence, shlex.join([*kept, *options]))


def _continued(summary: Summary) -> bool:
    """Return whether the command continued with a saved model."""
    return any(word.split("=")[0] == "--from" for word in summary.command)


def words_without(
    command: Sequence[str], options: Collection[str], flags: Collection[str] = ()
) -> list[str]:
    """Return a command without some options and their values, and without some flags."""
    kept: list[str] = []
    skip = False
    for word in command:
        name = word.split("=")[0]
        if not skip and name not in options and name not in flags:
            kept.append(word)
        skip = not skip and word in options
    return kept


def other_method(summary: Summary, *otherwise: str) -> tuple[str, ...]:
    """Return the options for the default method, or others if that is in use."""
    return otherwise if summary.settings.method == "OnlineGP" else ("--method", "online")


def follow_changes(summary: Summary) -> tuple[str, ...]:
    """Return the options for a model that forgets."""
    if summary.settings.arguments.get("forgetting") == "1":
        return ("--forgetting", "0.999")
    return other_method(summary, "--report", "report.html")


def times_of(summary: Summary) -> list[str]:
    """Return the columns that the command says are times."""
    words = summary.command
    return words[words.index("--time") + 1].split(",") if "--time" in words[:-1] else []


def with_columns(summary: Summary, columns: list[str]) -> tuple[str, ...]:
    """Return the options that choose some columns; those of times stay columns of times."""
    times = times_of(summary)
    if _continued(summary):  # the saved model knows them: columns of several inputs, no categories
        categories = {each.name for each in summary.all_variables if each.codes}
        several = [name for name in columns if summary.columns.count(name) > 1]
        times = [*times, *(name for name in several if name not in (*categories, *times))]
    kept = [name for name in times if name in columns]
    return (*(("--time", ",".join(kept)) if kept else ()), "--columns", ",".join(columns))

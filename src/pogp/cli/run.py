"""`pogp run`: compare the methods on one stream, with a table and a figure."""

import argparse
import sys
from dataclasses import fields
from pathlib import Path

from pogp.cli import comparison, options
from pogp.cli.console import Console, say
from pogp.evaluation.streams import SOURCES
from pogp.report import run_text
from pogp.report.run_record import Record, Settings

# The defaults of each view: the budget, and how many points may be removed per sample.
DEFAULTS: dict[str, tuple[float, int | None]] = {"everywhere": (0.6, None), "newest": (1e-5, 1)}

MAX_SIZE = 300
"""The default cap, the same as that of OnlineGP."""

DESCRIPTION = """\
Stream a data set through OnlineGP, AbsorbingPOG, POG, a random subset and the dense GP. Each method
predicts every sample before it learns it. Print how accurate, how large and how fast each of them
is, and draw error and model order over time.

The hyperparameters maximise the marginal likelihood of the first samples, whose mean is the prior
mean. These samples are not streamed. OnlineGP does not see them and tunes itself on the stream.
SMSE is the mean squared error over the variance of the training targets.
"""

EPILOG = """\
examples:
  pogp run                                  the simulated arm, in about half a minute
  pogp run --max-size none                  POG's budget alone decides how many points are kept;
                                            the other methods get as many as POG ends with
  pogp run --view newest                    POG with the rule of the paper, as it was published
  pogp run --view newest --max-removals all POG with Algorithm 2 as it is written
  pogp run --samples 20000 --dense-limit 0  a longer stream, without the dense GP
  pogp run --data kin40 --seed 3            a data set of the paper, in another order
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    _add_data_options(parser.add_argument_group("data"))
    _add_model_options(parser.add_argument_group("models"))
    _add_output_options(parser.add_argument_group("output"))


def execute(arguments: argparse.Namespace) -> int:
    """Run the comparison, print the table and write the record and the figure."""
    folder: Path = arguments.out
    folder.mkdir(parents=True, exist_ok=True)  # before the work, as it may fail
    console = Console(None if arguments.quiet else sys.stderr)
    record = comparison.execute(_settings(arguments), console)
    record.write(folder / "run.json")
    say(run_text.text(record), sys.stdout)
    console.note(f"\nWrote {folder / 'run.json'}")
    if arguments.figure:
        _draw(record, folder / "run.png", console)
    return 0


def _draw(record: Record, path: Path, console: Console) -> None:
    from pogp.report import run_figure

    try:
        run_figure.draw(record, path)
    except ImportError as error:
        say(f"pogp: no figure: {error}", sys.stderr)
    else:
        console.note(f"Wrote {path}")


def _settings(arguments: argparse.Namespace) -> Settings:
    # The view decides these two defaults. None cannot stand for them: it means no limit.
    budget, max_removals = DEFAULTS[arguments.view]
    given = {"budget": budget, "max_removals": max_removals} | vars(arguments)
    return Settings(**{field.name: given[field.name] for field in fields(Settings)})


def _add_data_options(group: "argparse._ArgumentGroup") -> None:
    group.add_argument(
        "--data",
        choices=SOURCES,
        default="arm",
        help="arm, gaussian and chi_square are simulated; the others are the data sets of the "
        "paper, which are downloaded unless POGP_DATA names their folder (default: arm)",
    )
    group.add_argument(
        "--samples",
        type=options.whole(2),
        metavar="N",
        help="training samples, including those for tuning (default: 5000 of the arm, 2200 of "
        "gaussian and chi_square as in the paper, all samples of the others)",
    )
    group.add_argument(
        "--tune",
        type=options.whole(2),
        metavar="N",
        help="the first N training samples are used for tuning (default: "
        + ", ".join(f"{source.tune} for {name}" for name, source in SOURCES.items())
        + ")",
    )
    group.add_argument(
        "--seed",
        type=options.whole(0),
        default=0,
        metavar="N",
        help="seed of the data or their order, of tuning and of the models (default: 0)",
    )


def _add_model_options(group: "argparse._ArgumentGroup") -> None:
    group.add_argument(
        "--view",
        choices=DEFAULTS,
        default="everywhere",
        help="where POG measures the cost of a removal: over the whole posterior, or at the newest "
        "input alone, as in the paper (default: everywhere)",
    )
    group.add_argument(
        "--budget",
        type=options.or_none("none", options.at_least_zero),
        default=argparse.SUPPRESS,
        metavar="EPS",
        help="POG's budget: the Hellinger distance that one compression may cost, or 'none' to "
        "remove points for --max-size only (default: 0.6 for everywhere, 1e-5 for newest)",
    )
    group.add_argument(
        "--max-removals",
        type=options.or_none("all", options.whole(0)),
        default=argparse.SUPPRESS,
        metavar="N",
        help="the most points that POG removes per sample under the budget, or 'all' (default: all "
        "for everywhere, 1 for newest, which gives the published figures)",
    )
    group.add_argument(
        "--max-size",
        type=options.or_none("none", options.whole(1)),
        default=MAX_SIZE,
        metavar="N",
        help="the most points that each method but the dense GP keeps, or 'none' for the number "
        f"that POG's budget leads to (default: {MAX_SIZE})",
    )
    group.add_argument(
        "--dense-limit",
        type=options.whole(0),
        default=5000,
        metavar="N",
        help="the most samples that the dense GP learns, as its cost grows with their cube; "
        "0 leaves it out (default: 5000)",
    )


def _add_output_options(group: "argparse._ArgumentGroup") -> None:
    group.add_argument(
        "--out",
        type=Path,
        default=Path("pogp-run"),
        metavar="DIR",
        help="folder for run.json and run.png, which are overwritten (default: pogp-run)",
    )
    group.add_argument(
        "--no-figure", dest="figure", action="store_false", help="do not draw run.png"
    )
    group.add_argument("--quiet", action="store_true", help="print the table and nothing else")

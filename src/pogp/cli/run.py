"""`pogp run`, the main job: stream a data set through POG, end with a table and a figure."""

import argparse
import sys
from pathlib import Path

from pogp.cli import comparison, options
from pogp.cli.progress import Console
from pogp.cli.streams import SOURCES
from pogp.report import table
from pogp.report.record import Record, Settings

# What each view is run with by default: its budget, and how many points may go per sample.
DEFAULTS: dict[str, tuple[float, int | None]] = {"everywhere": (0.6, None), "newest": (1e-5, 1)}

DESCRIPTION = """\
Stream a data set through POG, which predicts each sample before it learns it, then through a
random subset of the size that POG ended with and through the dense GP. Print how accurate, how
large and how fast each of them is, and draw error, model order and Hellinger distance over time.

Hyperparameters maximise the marginal likelihood of the first samples, which then leave the stream
and give the prior mean. SMSE is the mean squared error over the variance of the training targets.
"""

EPILOG = """\
the default model:
  --view everywhere --budget 0.6: a removal is judged by how far it moves the whole posterior.
  On the arm, over seeds 0 to 5, it ends with 500 to 1000 points and a squared error 36 to 55%
  below that of a random subset of the same size. The settings of the paper's figures, --view
  newest --budget 1e-5 --max-removals 1, end with 300 to 450 points and 0 to 28% below. The
  default was chosen by those runs; on seeds 6 to 9, not looked at before, it ended with 316 to
  453 points and 37 to 46% below, the paper's with 428 to 465 points and 7 to 23% below. On other
  sets, such as abalone and boston, a random subset may be better; the last lines then say so.

examples:
  pogp run                                  the simulated arm, below a minute
  pogp run --view newest                    the rule of the paper, as it was published
  pogp run --view newest --max-removals all Algorithm 2 as it is written
  pogp run --samples 20000 --max-size 500   a longer stream in a fixed memory
  pogp run --data kin40 --seed 3            a set of the paper, in another order
  OPENBLAS_NUM_THREADS=1 pogp run           on a busy machine, where threads wait for each other
"""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to those of `pogp`."""
    parser = subparsers.add_parser(
        "run",
        help="stream a data set through POG; end with a table and a figure",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(command=execute)
    _add_data_options(parser.add_argument_group("data"))
    _add_model_options(parser.add_argument_group("models"))
    _add_output_options(parser.add_argument_group("output"))


def execute(arguments: argparse.Namespace) -> int:
    """Run the job and report on it."""
    folder: Path = arguments.out
    folder.mkdir(parents=True, exist_ok=True)  # before the work: it may fail
    console = Console(None if arguments.quiet else sys.stderr)
    record = comparison.execute(_settings(arguments), console)
    record.write(folder / "run.json")
    print(table.text(record))
    console.note(f"\nWrote {folder / 'run.json'}")
    if arguments.figure:
        _draw(record, folder / "run.png", console)
    return 0


def _draw(record: Record, path: Path, console: Console) -> None:
    from pogp.report import figures

    try:
        figures.draw(record, path)
    except ImportError as error:
        print(f"pogp: no figure: {error}", file=sys.stderr)
    else:
        console.note(f"Wrote {path}")


def _settings(arguments: argparse.Namespace) -> Settings:
    # These two have no default of their own: None already means something, and the view decides.
    budget, max_removals = DEFAULTS[arguments.view]
    return Settings(
        data=arguments.data,
        samples=arguments.samples,
        tune=arguments.tune,
        budget=getattr(arguments, "budget", budget),
        view=arguments.view,
        max_size=arguments.max_size,
        max_removals=getattr(arguments, "max_removals", max_removals),
        dense_limit=arguments.dense_limit,
        seed=arguments.seed,
    )


def _add_data_options(group: "argparse._ArgumentGroup") -> None:
    group.add_argument(
        "--data",
        choices=SOURCES,
        default="arm",
        help="arm, gaussian and chi_square are simulated, the others are those of the paper and "
        "are downloaded unless POGP_DATA names their folder (default: arm)",
    )
    group.add_argument(
        "--samples",
        type=options.whole(2),
        metavar="N",
        help="training samples, those for tuning included (default: 5000 of the arm, 2200 of "
        "gaussian and chi_square as in the paper, all of the others)",
    )
    group.add_argument(
        "--tune",
        type=options.whole(2),
        metavar="N",
        help="how many of them, from the first, give the hyperparameters (default: "
        + ", ".join(f"{source.tune} for {name}" for name, source in SOURCES.items())
        + ")",
    )
    group.add_argument(
        "--seed",
        type=options.whole(0),
        default=0,
        metavar="N",
        help="of the simulation or the order of the stream, of tuning and of the random subset "
        "(default: 0)",
    )


def _add_model_options(group: "argparse._ArgumentGroup") -> None:
    group.add_argument(
        "--view",
        choices=DEFAULTS,
        default="everywhere",
        help="where POG measures what a removal costs: over the whole posterior, or at the newest "
        "input alone as in the paper (default: everywhere)",
    )
    group.add_argument(
        "--budget",
        type=options.or_none("none", options.at_least_zero),
        default=argparse.SUPPRESS,
        metavar="EPS",
        help="Hellinger distance that one step of compression may cost, or 'none' to remove for "
        "--max-size only (default: 0.6 everywhere, 1e-5 at the newest)",
    )
    group.add_argument(
        "--max-removals",
        type=options.or_none("all", options.whole(0)),
        default=argparse.SUPPRESS,
        metavar="N",
        help="points that may go per sample under the budget, or 'all' (default: all everywhere, "
        "1 at the newest, which gives the figures that were published)",
    )
    group.add_argument(
        "--max-size",
        type=options.whole(1),
        metavar="N",
        help="cap on POG's model order, kept whatever it costs (default: none)",
    )
    group.add_argument(
        "--dense-limit",
        type=options.whole(0),
        default=5000,
        metavar="N",
        help="feed the dense GP no more than so many samples, as its cost grows with their cube; "
        "0 leaves it out (default: 5000)",
    )


def _add_output_options(group: "argparse._ArgumentGroup") -> None:
    group.add_argument(
        "--out",
        type=Path,
        default=Path("pogp-run"),
        metavar="DIR",
        help="folder for run.json and run.png, replaced if there (default: pogp-run)",
    )
    group.add_argument(
        "--no-figure", dest="figure", action="store_false", help="do not draw run.png"
    )
    group.add_argument("--quiet", action="store_true", help="print the table and nothing else")

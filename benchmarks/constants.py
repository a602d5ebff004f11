"""How the constants of `OnlineGP` do beside others, one stream left out at a time.

`python -m benchmarks.constants` learns ten streams with each constant at its value and at others,
every other constant as it is. Predictions made before each sample are scored by their mean CRPS. It
takes an hour. What is done is kept in `build/constants.jsonl` and not done again. A table follows:

- *change*: by how much the other value changes the score, averaged over the streams, with a
  standard error. Above zero the value in force is better.
- *chosen by the others*: a stream is left out, and the value that is best on average over the other
  streams is chosen. The column says how often that is the value in force, and the last one what the
  streams that were left out would lose by the value in force beside the values chosen so.

Recordings, kin40k and Abalone are read from `POGP_DATA`; without it two simulated arms remain.
"""

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

import numpy as np

VARIED = {
    "pogp.online.ensemble:MAX_RACE": ("100", "400"),
    "pogp.online.ensemble:REMOVAL_MARGIN, SURPRISE_MARGIN": ("10.0, 20.0", "5.0, 40.0"),
    "pogp.online.ensemble:NATS_PER_POINT": ("0.003", "0.03"),
    "pogp.online.stream:WINDOW": ("15", "60"),
    "pogp.online.surprises:TAIL, FAR": ("3.0, 6.0", "5.0, 10.0"),
    "pogp.online.mixture:DISCOUNTS": (
        "np.array([0.8, 0.9, 0.98])",
        "np.array([0.95, 0.98, 0.995])",
    ),
    "pogp.online.mixture:OUTER": ("np.array([0.98])", "np.array([0.995])"),
    "pogp.online.arithmetic:FREEDOM": ("2.0", "8.0"),
    "pogp.online.arithmetic:RATE": ("0.01", "0.04"),
    "pogp.online.arithmetic:LAG_DISCOUNT": ("0.98", "0.995"),
    "pogp.online.arithmetic:PRIOR_COUNT": ("2.0", "10.0"),
    "pogp.online.arithmetic:CALIBRATE_AFTER": ("10", "40"),
    "pogp.online.group:SHARE": ("0.03", "0.3"),
    "pogp.online.group:OUTLIER_BOUND": ("2.5", "5.0"),
    "pogp.online.group:LEAST_FACTOR": ("0.003", "0.03"),
    "pogp.online.tuning:SAMPLES, DENSE_SAMPLES": ("600, 350", "600, 600", "400, 300"),
    "pogp.online.retuning:FIRST, AGAIN": ("15, 5", "30, 10"),
    "pogp.online.retuning:CHALLENGE_FROM": ("125", "500"),
    "pogp.online.group_start:TRANSFER_FROM": ("300", "1200"),
    "pogp.online.pending:CATCH_UP": ("2", "4"),
    "pogp.online.simple_predictors:WINDOW": ("25", "100"),
    "pogp.online.simple_predictors:FORGETTING": ("0.998", "0.9995"),
    "pogp.online.tuning:INDUCING": ("70", "150"),
    "pogp.online.tuning:NOISY": ("0.1", "0.4"),
    "pogp.online.tuning:REACH": ("4.0", "8.0"),
    "pogp.online.scales:FAR": ("4.0", "9.0"),
    "pogp.online.samples:STOPPED_AFTER": ("15", "60"),
    "pogp.slices:STEPS_PER_SAMPLE": ("6", "12"),
}
"""The constants, and other values to try."""
SAMPLES, FIRST, SEEDS = 2600, 50, 2
"""Of each stream; the first ones are not scored."""
RESULTS = Path("build/constants.jsonl")
Scores = dict[str, list[float]]
"""Log CRPS by stream, for each seed."""


class Patched(SourceFileLoader):
    """Loads a module with one of its constants at another value."""

    def __init__(self, fullname: str, path: str, constant: str, value: str) -> None:
        super().__init__(fullname, path)
        self._line = re.compile(rf"^{re.escape(constant)} = .*$", re.MULTILINE)
        self._value = f"{constant} = {value}"

    def get_code(self, fullname: str) -> CodeType:
        """Compile the changed source, whatever bytecode there is."""
        source, found = self._line.subn(self._value, self.get_data(self.path).decode())
        if found != 1:
            raise SystemExit(f"{fullname} has {found} lines '{self._line.pattern}', expected one")
        return compile(source, self.path, "exec")


class Finder:
    """Finds one module in the place of the usual finders."""

    def __init__(self, place: str, value: str) -> None:
        self._module, self._constant = place.split(":")
        self._value = value

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return how to load the module, None for all others."""
        if name != self._module:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.origin is not None:
            spec.loader = Patched(name, spec.origin, self._constant, self._value)
        return spec


def scored() -> Scores:
    """Learn all streams; return log CRPS."""
    import pogp
    from benchmarks.streams import streams

    data = {name: (stream.X, stream.y) for name, stream in streams([], SAMPLES)}
    for name in ("kin40k", "abalone"):
        try:
            table = pogp.datasets.load(name)
        except pogp.datasets.DataUnavailable:
            continue
        data[name] = (table.x_train[:SAMPLES], table.y_train[:SAMPLES])
    still = pogp.datasets.arm(SAMPLES)
    data["still arm"] = (still.x_train[:SAMPLES], still.y_train[:SAMPLES])
    found: Scores = {}
    for name, (X, y) in data.items():
        found[name] = []
        for seed in range(SEEDS):
            trace = pogp.OnlineGP(seed=seed).learn(X, y)
            crps = pogp.metrics.crps(y[FIRST:], trace.mean[FIRST:], trace.variance[FIRST:])
            found[name].append(float(np.log(crps)))
    return found


def results() -> dict[tuple[str, str], Scores]:
    """Return what was found so far."""
    lines = RESULTS.read_text().splitlines() if RESULTS.exists() else []
    rows = [json.loads(line) for line in lines]
    return {(row["place"], row["value"]): row["scores"] for row in rows}


def run(place: str, value: str) -> None:
    """Score one value in a process of its own, and write it down."""
    command = [sys.executable, "-m", "benchmarks.constants", "--one", place, value]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    row = {"place": place, "value": value, "scores": json.loads(output)}
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("a") as file:
        file.write(json.dumps(row) + "\n")


def table() -> None:
    """Print a line for each value that was tried."""
    found = results()
    usual = found["", ""]
    names = list(usual)

    def changes(scores: Scores) -> np.ndarray:
        return np.array([np.mean(scores[name]) - np.mean(usual[name]) for name in names])

    print(f"{'constant':<40}{'other value':>32}{'change':>18}{'chosen':>10}{'loss':>8}")
    for place, others in VARIED.items():
        tried = [value for value in others if (place, value) in found]
        if not tried:
            continue
        by_value = np.array(
            [0 * changes(usual), *(changes(found[place, value]) for value in tried)]
        )
        left_out = (by_value.sum(axis=1, keepdims=True) - by_value).argmin(axis=0)
        kept = f"{np.sum(left_out == 0)}/{len(names)}"
        loss = -np.mean(by_value[left_out, np.arange(len(names))])
        for i, value in enumerate(tried, start=1):
            mean, error = by_value[i].mean(), by_value[i].std(ddof=1) / np.sqrt(len(names))
            label, ending = (place, f"{kept:>10}{loss:>8.1%}") if i == 1 else ("", "")
            print(f"{label:<40}{value:>32}{f'{mean:+.1%} ± {error:.1%}':>18}{ending}")


def main() -> int:
    """Run what is missing, then print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.constants", description=__doc__)
    parser.add_argument("--one", nargs=2, metavar=("PLACE", "VALUE"), help=argparse.SUPPRESS)
    parser.add_argument("--table", action="store_true", help="only print what was found so far")
    options = parser.parse_args()
    if options.one:
        if options.one[0]:
            sys.meta_path.insert(0, Finder(*options.one))
        print(json.dumps(scored()))
        return 0
    if not options.table:
        wanted = [("", ""), *((place, value) for place, tried in VARIED.items() for value in tried)]
        for i, (place, value) in enumerate(wanted, start=1):
            if (place, value) not in results():
                print(f"{i} of {len(wanted)}: {place} {value}", file=sys.stderr, flush=True)
                run(place, value)
    table()
    return 0


if __name__ == "__main__":
    sys.exit(main())

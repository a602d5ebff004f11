"""The state of a stream as a flat mapping to arrays and numbers.

Names in files are those of the first version of a part, so they differ from some attributes. Values
that older files do not have are left out if they are as usual.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import numpy as np

from pogp.online.group import Group, occasion_state, restored_occasions, with_prefix
from pogp.online.group_start import GroupStart
from pogp.online.pending import PendingTuning
from pogp.online.relation import RelationTest
from pogp.online.retuning import Search
from pogp.online.scales import Scales
from pogp.online.stream import Stream

NUMBERS = {
    "origin": "origin",
    "changed": "changed",
    "due": "next_tuning",
    "tunings": "n_tunings",
    "race_end": "ensemble.race_end",
    "strange": "ensemble.surprises.rate",
    "quiet_until": "quiet_until",
    "gap": "quiet_period",
    "extra": "extra_tuning",
}
FLAGS = {"surprised": "ensemble.surprises.last", "resting": "resting", "stuck": "ensemble.stuck"}
"""Names in files, and attributes of a stream."""


def state_of(stream: Stream) -> dict[str, Any]:
    """Return the state of a stream."""
    ensemble = stream.ensemble
    parts: dict[str, dict[str, Any]] = {
        "rows": stream.samples.state(),
        "experts": ensemble.predictors.state(),
        "mixture": ensemble.mixture.state(),
        "band": ensemble.band.state(),
        "jumps": ensemble.jumps.state(),
        "former": stream.previous.state(),
        "relation": stream.relation.state(),
        "starts": {family: start.copy() for family, start in stream.starts.items()},
    }
    if ensemble.scales is not None:
        parts["scales"] = ensemble.scales.state()
    if stream.pending is not None:
        parts["pending"] = stream.pending.plan.state()
    parts |= {f"group{i}": group.state() for i, group in enumerate(ensemble.groups)}
    flat = {f"{name}.{key}": value for name, of in parts.items() for key, value in of.items()}
    return {
        **flat,
        **{name: attrgetter(path)(stream) for name, path in NUMBERS.items()},
        **ensemble.surprises.state(),
        "challenged": stream.challenger_age,
        **{name: True for name, path in FLAGS.items() if attrgetter(path)(stream)},
        **occasion_state(ensemble.predictors.occasion_scores),
        "scores": ensemble.predictors.scores.copy(),
        "groups": len(ensemble.groups),
        "history": [list(event) for event in stream.history],
    }


def restore(stream: Stream, state: dict[str, Any]) -> None:
    """Restore what `state_of` returned."""
    ensemble = stream.ensemble
    predictors = ensemble.predictors
    stream.samples.restore(with_prefix(state, "rows."))
    predictors.restore(with_prefix(state, "experts."))
    ensemble.mixture.restore(with_prefix(state, "mixture."))
    ensemble.band.restore(with_prefix(state, "band."))
    ensemble.jumps.restore(with_prefix(state, "jumps."), stream.samples.latest(0).X)
    starts = with_prefix(state, "starts.")
    stream.starts = {family: np.array(start) for family, start in starts.items()}
    scales, pending = with_prefix(state, "scales."), with_prefix(state, "pending.")
    ensemble.scales = Scales.restored(scales) if scales else None
    for name, path in NUMBERS.items():
        _set(stream, path, state[name])
    ensemble.surprises.restore(state)
    stream.challenger_age = state.get("challenged", -1)
    for name, path in FLAGS.items():
        _set(stream, path, bool(state.get(name, False)))
    predictors.scores = np.array(state["scores"], dtype=np.float64)
    predictors.occasion_scores = restored_occasions(state, predictors.scores.shape)
    shape, count = (ensemble.outputs, stream.max_size), int(state["groups"])
    groups = [with_prefix(state, f"group{i}.") for i in range(count)]
    ensemble.set_groups([Group.restored(group, *shape) for group in groups])
    stream.previous.restore(with_prefix(state, "former."), stream.max_size)
    stream.relation.restore(with_prefix(state, "relation."), *shape, stream.seen)
    stream.history = [list(event) for event in state["history"]]
    stream.pending = None
    if pending:
        plan: Search | GroupStart | RelationTest
        if "found" in pending:
            plan = GroupStart.restored(pending, stream.max_size)
        elif "tested" in pending:
            plan = RelationTest.restored(pending)
        else:
            plan = Search.restored(pending, stream.seed, stream.robust)
        stream.pending = PendingTuning(plan)
        stream.pending.replay(stream.samples, stream.seen)
    if stream.resting:
        stream.calibrate_at_rest()


def _set(stream: Stream, path: str, value: Any) -> None:
    """Set an attribute, which may be one of a part."""
    *parts, name = path.split(".")
    setattr(attrgetter(".".join(parts))(stream) if parts else stream, name, value)

"""A stream as arrays and numbers, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from pogp.online.birth import Birth
from pogp.online.group import Group, part
from pogp.online.pending import Pending
from pogp.online.retuning import Search
from pogp.online.scales import Scales
from pogp.online.stream import Stream

NUMBERS = (
    "origin",
    "changed",
    "due",
    "tunings",
    "race_end",
    "strange",
    "far",
    "nearly",
    "quiet_until",
    "gap",
    "extra",
)
FLAGS = ("surprised", "resting")


def state_of(stream: Stream) -> dict[str, Any]:
    """Return all that a stream knows, as a flat mapping to arrays and numbers."""
    parts: dict[str, dict[str, Any]] = {
        "rows": stream.rows.state(),
        "experts": stream.experts.state(),
        "mixture": stream.mixture.state(),
        "band": stream.band.state(),
        "former": stream.former.state(),
        "starts": {family: start.copy() for family, start in stream.starts.items()},
    }
    if stream.scales is not None:
        parts["scales"] = stream.scales.state()
    if stream.pending is not None:
        parts["pending"] = stream.pending.plan.state()
    parts |= {f"group{i}": group.state() for i, group in enumerate(stream.groups)}
    flat = {f"{name}.{key}": value for name, of in parts.items() for key, value in of.items()}
    # older files know neither moments after a sample that was far off nor streams that rest
    flags = {name: True for name in FLAGS if getattr(stream, name)}
    after = {"after": stream.after.copy()} if stream.after.any() else {}
    return {
        **flat,
        **{name: getattr(stream, name) for name in NUMBERS},
        "challenged": stream.challenged,
        **flags,
        **after,
        "scores": stream.scores.copy(),
        "groups": len(stream.groups),
        "history": [list(event) for event in stream.history],
    }


def restore(stream: Stream, state: dict[str, Any]) -> None:
    """Let a stream take over what `state_of` returned."""
    stream.rows.restore(part(state, "rows."))
    stream.experts.restore(part(state, "experts."))
    stream.mixture.restore(part(state, "mixture."))
    stream.band.restore(part(state, "band."))
    stream.starts = {name: np.array(value) for name, value in part(state, "starts.").items()}
    scales, pending = part(state, "scales."), part(state, "pending.")
    stream.scales = Scales.restored(scales) if scales else None
    for name in NUMBERS:
        setattr(stream, name, state[name])
    stream.challenged = state.get("challenged", -1)  # older files have none
    for name in FLAGS:
        setattr(stream, name, bool(state.get(name, False)))
    stream.scores = np.array(state["scores"], dtype=np.float64)
    stream.after = np.array(state.get("after", np.zeros_like(stream.scores)))
    shape, count = (stream.outputs, stream.max_size), int(state["groups"])
    stream.arrange([Group.restored(part(state, f"group{i}."), *shape) for i in range(count)])
    stream.former.restore(part(state, "former."), stream.max_size)
    stream.history = [list(event) for event in state["history"]]
    stream.pending = None
    if pending:
        if "found" in pending:
            stream.pending = Pending(Birth.restored(pending, stream.max_size))
        else:
            stream.pending = Pending(Search.restored(pending, stream.seed, stream.robust))
        stream.pending.replay(stream.rows, stream.seen)

"""Models in files of earlier schemas, as the models of today.

Until schema 3 the state was called memory, and two of its numbers otherwise (`_RENAMED`). Schema 1
had

- for retained samples, numbers by which their precision matrix was checked now and then;
- for absorbed ones, K and the information of the data next to other matrices
  (`posteriors/absorbed/` reads what it needs), and the argument `temper`;
- `AbsorbingPOG.auto`, which is now `SelfTuning("absorbing")`: arguments `warmup` and `family`.
"""

from typing import Any

_CHECKS = ("unchecked", "rebuilds", "tolerance")
_ABSORBED = ("extra", "glances", "gram", "nugget", "open", "rebuilds", "tolerance", "unforgotten")
_RENAMED = {"heard": "rehearsed", "uneven": "has_sample_noise"}
_MATRICES = ("dispersion", "information", "inverse", "precision")
_CARRIED = ("budget", "max_size", "forgetting", "calibrate", "projection", "seed")
"""Arguments that a model which tunes itself hands on."""


def upgraded(header: dict[str, Any], arrays: dict[str, Any]) -> dict[str, Any]:
    """Return the header of a file of any schema as the models of today have it."""
    if header["schema"] >= 3:
        return header
    header = dict(header, arguments=dict(header["arguments"]), state=_renamed(header["memory"]))
    return _of_schema_1(header, arrays) if header["schema"] == 1 else header


def _renamed(memory: dict[str, Any]) -> dict[str, Any]:
    """Return a state under the names of today, in whatever part of it they are."""
    names = {name: name for name in memory}
    for old, new in _RENAMED.items():
        names |= {name: name.removesuffix(old) + new for name in names if name.endswith(old)}
    return {names[name]: value for name, value in memory.items()}


def _of_schema_1(header: dict[str, Any], arrays: dict[str, Any]) -> dict[str, Any]:
    for name in _of_each_part(header["state"], "unchecked", _CHECKS):
        header["state"].pop(name, None)
    arguments = header["arguments"]
    if header["model"] == "AbsorbingPOG" or arguments.get("method") == "absorbing":
        arguments.pop("temper", None)
    if header["model"] == "AbsorbingPOG":
        warmup, family = arguments.pop("warmup", 0), arguments.pop("family", None)
        if warmup:
            return _self_tuning(header, arrays, warmup, family)
    return header


def retired(state: dict[str, Any]) -> set[str]:
    """Return the names of what a model of schema 1 learned, and keeps in another form today."""
    due = (f"{name}_{side}" for name in _MATRICES for side in ("left", "right"))
    return _of_each_part(state, "evidence", ("weights", *_ABSORBED, *_MATRICES, *due))


def _of_each_part(state: dict[str, Any], sign: str, names: tuple[str, ...]) -> set[str]:
    """Return the names, as they are in each part of a state that has `sign`, and that itself."""
    parts = [name.removesuffix(sign) for name in state if name.endswith(sign)]
    return {part + name for part in parts for name in (sign, *names)}


def _self_tuning(
    header: dict[str, Any], arrays: dict[str, Any], warmup: int, family: str | None
) -> dict[str, Any]:
    """Return what `AbsorbingPOG.auto` was while it collected samples, as a `SelfTuning`."""
    old = header["arguments"]
    own = {"method": "absorbing", "noise": None, "warmup": warmup, "scale": False}
    shapes: dict[str, Any] = {"dimension": None, "target": None}
    if "warmup_inputs" in arrays:
        flat = header["state"]["flat"]
        target = [] if flat else list(arrays["warmup_targets"].shape[1:])
        shapes = {"dimension": arrays["warmup_inputs"].shape[1], "target": target}
    carried = {name: old[name] for name in _CARRIED}
    arguments = {**own, **carried, "kernel": family or old["kernel"]}
    return {**header, "model": "SelfTuning", "arguments": arguments, "state": shapes}

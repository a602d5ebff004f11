"""The models by name, as adapters and the command line know them."""

import inspect
from collections.abc import Mapping
from functools import cache
from typing import Any

from pogp.models.absorbing import AbsorbingPOG
from pogp.models.base import Model
from pogp.models.baselines.greedy import KeerthiChu, Seeger, SmolaBartlett
from pogp.models.baselines.krls import KRLSALD, KRLST
from pogp.models.baselines.pseudo_inputs import SPGP, VFE
from pogp.models.baselines.sogp import SOGP, McIntire
from pogp.models.baselines.streaming import StreamingVFE
from pogp.models.baselines.subsets import RandomSubset, SlidingWindow
from pogp.models.dense import DenseGP
from pogp.models.online import OnlineGP
from pogp.models.pog import POG

METHODS: dict[str, type[Model]] = {
    # online
    "online": OnlineGP,
    "absorbing": AbsorbingPOG,
    "pog": POG,
    "dense": DenseGP,
    "random": RandomSubset,
    "window": SlidingWindow,
    "sogp": SOGP,
    "mcintire": McIntire,
    "krls-ald": KRLSALD,
    "krls-t": KRLST,
    "streaming-vfe": StreamingVFE,
    # offline: they fit all samples at once
    "spgp": SPGP,
    "vfe": VFE,
    "smola-bartlett": SmolaBartlett,
    "keerthi-chu": KeerthiChu,
    "seeger": Seeger,
}

NOT_OPTIONS = ("self", "kernel", "noise", "seed")
"""Arguments that are not options: adapters have their own parameters for them."""

AUTO = "auto"
CAP = 300
"""The default cap of adapters."""


def kind_of(method: object) -> type[Model]:
    """Return the class of a method.

    >>> kind_of("sogp").__name__
    'SOGP'
    """
    if isinstance(method, str) and method in METHODS:
        return METHODS[method]
    raise ValueError(f"method must be one of {', '.join(METHODS)}; got {method!r}")


@cache
def parameters_of(method: str) -> Mapping[str, inspect.Parameter]:
    """Return the parameters of a method's constructor."""
    return inspect.signature(kind_of(method).__init__).parameters


def options_of(method: str) -> list[str]:
    """Return the names of a method's options: all but the kernel, the noise and the seed.

    >>> options_of("sogp")
    ['max_size', 'tolerance', 'mean']
    """
    return [name for name in parameters_of(method) if name not in NOT_OPTIONS]


def cap_of(method: str) -> str:
    """Return what a method calls its largest model order, if it has one."""
    return "size" if "size" in options_of(method) else "max_size"


def require_options(method: str, options: Mapping[str, Any]) -> None:
    """Raise ValueError for an option that the method does not have, or needs and was not given."""
    known = options_of(method)
    for name in options:
        if name not in known:
            raise ValueError(
                f"method {method!r} has no option {name!r}; it takes {', '.join(known)}"
            )
    for name in known:
        needed = parameters_of(method)[name].default is inspect.Parameter.empty
        if needed and name not in options:
            raise ValueError(f"method {method!r} needs the option {name!r}, which was not given")


def options_from(
    method: str,
    budget: object = AUTO,
    max_size: object = AUTO,
    options: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a method's options from what an adapter calls by the same name for all methods.

    `budget` is the method's own if "auto". `max_size` is what some methods call `size`; if "auto"
    it is 300 for those that have either. `options` are further ones.

    >>> options_from("spgp"), options_from("absorbing", budget=None, options={"share": 0.0})
    ({'size': 300}, {'max_size': 300, 'budget': None, 'share': 0.0})
    """
    cap = cap_of(method)
    named = {"budget": budget, cap: max_size}
    given = {k: v for k, v in named.items() if not (isinstance(v, str) and v == AUTO)}
    further = dict(options or {})
    for name in given.keys() & further.keys():
        raise ValueError(
            f"{name} is given twice: {given[name]!r}, and {further[name]!r} in options"
        )
    return {**({cap: CAP} if cap in options_of(method) else {}), **given, **further}

"""The model behind the adapters and the command: any method, on raw data."""

from typing import Any, TypeAlias

from pogp.models.online import OnlineGP
from pogp.models.selftuning.model import SelfTuning
from pogp.models.selftuning.registry import options_from, require_options

Made: TypeAlias = OnlineGP | SelfTuning


def made(
    method: str = "online",
    *,
    kernel: object = None,
    noise: float | None = None,
    warmup: int = 300,
    scale: bool = False,
    seed: int = 0,
    **options: Any,
) -> Made:
    """Return `OnlineGP` for the method "online", and `SelfTuning` for any other.

    What `OnlineGP` finds out by itself cannot be given; `warmup` and `scale` do not concern it.

    >>> made(max_size=100).max_size, made("sogp", max_size=20).method
    (100, 'sogp')
    """
    if method != "online":
        choices: dict[str, Any] = {"kernel": kernel, "noise": noise, "warmup": warmup}
        return SelfTuning(method, **choices, scale=scale, seed=seed, **options)
    for name, value in (("kernel", kernel), ("noise", noise)):
        if value is not None:
            raise ValueError(
                f"method 'online' finds its own {name}, got {value!r}; a {name} of your own is for "
                "the other methods, 'absorbing' for example"
            )
    require_options(method, options)
    return OnlineGP(seed=seed, **options)


def made_for(adapter: Any, seed: int) -> Made:
    """Return the model that the parameters of an adapter describe, before it has learned."""
    given = {name: getattr(adapter, name) for name in ("kernel", "noise", "warmup", "scale")}
    options = options_from(adapter.method, adapter.budget, adapter.max_size, adapter.options)
    return made(adapter.method, seed=seed, **given, **options)

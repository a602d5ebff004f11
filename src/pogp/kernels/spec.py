"""Kernels from their descriptions, as `Kernel.to_spec` writes them."""

from pogp.kernels.elementary import BUILTIN
from pogp.kernels.kernel import Kernel
from pogp.kernels.pairs import PAIRS


def kernel_from_spec(spec: object) -> Kernel:
    """Return the kernel that `to_spec` described.

    >>> kernel_from_spec({"kind": "RBF", "lengthscale": [1.0, 2.0], "variance": 0.5})
    RBF(lengthscale=[1.0, 2.0], variance=0.5)
    """
    try:
        return _build(spec)
    except RecursionError:
        raise ValueError("the description of the kernel is nested too deeply") from None


def _build(spec: object) -> Kernel:
    match spec:
        case {"kind": str(kind), "left": left, "right": right, **rest}:
            if kind in PAIRS and not rest:
                return PAIRS[kind](_build(left), _build(right))
        case {"kind": str(kind)}:
            if kind in BUILTIN and isinstance(spec, dict):
                return BUILTIN[kind].from_spec(spec)
    raise ValueError(f"not the description of a kernel: {spec!r}")

"""Parsimonious Online Gaussian Processes: the paper's model (Algorithm 1)."""

from pogp.budgets import Budget
from pogp.compression import Compression
from pogp.criteria import Criterion, Everywhere, Newest
from pogp.models.base import Argument
from pogp.models.retained import RetainedModel

VIEWS: dict[str, type[Criterion]] = {"newest": Newest, "everywhere": Everywhere}


class POG(RetainedModel):
    """Append each sample, then remove as many retained ones as the budget allows.

    Parameters
    ----------
    kernel
        The covariance function: one of ours, or a callable κ(A, B) → (n, m).
    noise
        The variance of the observation noise.
    budget
        The Hellinger distance that the compression of one step may cost: a number ≥ 0, `Constant`,
        `Decay`, a callable of the number of samples learned before, or None to remove only what
        `max_size` asks for.
    view
        Where the distance is measured. "newest" is the paper's Algorithm 2: the marginal of y at
        the newest input. "everywhere" is the whole posterior. A `pogp.criteria.Criterion` of your
        own measures what it likes, and the budget is in its unit.
    max_size
        A cap on the model order, kept whatever it costs.
    max_removals
        At most so many removals per sample under the budget. 1 gives the paper's published
        figures, 0 keeps everything that `max_size` allows.
    mean
        The constant prior mean.

    >>> import numpy as np, pogp
    >>> X = np.random.default_rng(0).uniform(-3, 3, (2000, 1))
    >>> model = POG(pogp.RBF(lengthscale=1.0), noise=0.01, budget=1e-3, max_removals=1)
    >>> trace = model.learn(X, np.sin(X[:, 0]))
    >>> model.seen, model.size < 50
    (2000, True)
    >>> mean, variance = model.predict([1.0])
    >>> abs(mean - np.sin(1.0)) < 0.1
    np.True_
    """

    changeable = ("budget", "view", "max_size", "max_removals")

    def __init__(
        self,
        kernel: object,
        noise: float,
        budget: float | Budget | None = 1e-5,
        *,
        view: str | Criterion = "newest",
        max_size: int | None = None,
        max_removals: int | None = None,
        mean: float = 0.0,
    ) -> None:
        compression = Compression(_criterion(view), budget, max_size, max_removals)
        super().__init__(kernel, noise, mean, compression)
        self._view = view
        self._budget, self._max_size = compression.budget, compression.max_size
        self._max_removals = compression.max_removals

    budget = Argument[Budget | None]("The budget, as a callable of the number of samples before.")
    view = Argument[str | Criterion]('Where the distance is measured: "newest", "everywhere", ...')
    max_size = Argument[int | None]("The cap on the model order.")
    max_removals = Argument[int | None]("The most points removed per sample under the budget.")


def _criterion(view: object) -> Criterion:
    if isinstance(view, Criterion):
        return view
    if isinstance(view, str) and view in VIEWS:
        return VIEWS[view]()
    raise ValueError(f"view must be one of {sorted(VIEWS)} or a Criterion, got {view!r}")

"""An adapter for scikit-learn: any method of the package as a regressor."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from pogp import encoding
from pogp.arrays import Array
from pogp.budgets import Budget
from pogp.encoding import Encoder
from pogp.encoding.columns import Cells, category_of
from pogp.encoding.encoder import inputs_of, warn_of_strangers
from pogp.encoding.imputer import Filled
from pogp.models.selftuning.factory import Made, made_for
from pogp.models.selftuning.registry import METHODS

try:
    from sklearn.base import BaseEstimator, RegressorMixin
    from sklearn.gaussian_process.kernels import Kernel as TheirKernel
    from sklearn.utils import Tags, check_random_state
    from sklearn.utils.metaestimators import available_if
    from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
except ImportError as error:
    raise ImportError("pogp.sklearn needs scikit-learn; pip install 'pogp[sklearn]'") from error


def _learns_online(regressor: POGRegressor) -> bool:
    """Return whether the method has `partial_fit`; if not, raise an error with the reason."""
    kind = METHODS.get(regressor.method)
    if kind is not None and not kind.online:
        raise AttributeError(
            f"method {regressor.method!r} learns all samples at once: use fit, or an online method"
        )
    return True


class POGRegressor(RegressorMixin, BaseEstimator):
    """Gaussian process regression in bounded memory, by any method of the package.

    Samples are learned in their order. The default, "online", is `pogp.OnlineGP`, which needs no
    hyperparameters and adapts to changes along the rows. To predict rows from anywhere in an
    ordered table, shuffle it first. The other methods find hyperparameters on the first `warmup`
    samples, or on all if there are fewer. Until `partial_fit` has seen `warmup` samples, these
    methods predict the mean and the variance of the targets.

    X may be a data frame with times and texts, and have missing values (NaN, None, NaT). A missing
    value is filled with what the other columns and the row before say of it, which adds to the
    variance. Times become elapsed time and places in the day, the week and the year; texts become
    categories. What a column holds is decided by the rows of the first call, or by its first value
    if all are missing there.

    Parameters
    ----------
    method : str, default "online"
        The name of the model: "online", "absorbing", "pog", "dense", "random", "window", "sogp",
        "mcintire", "krls-ald", "krls-t" or "streaming-vfe"; without `partial_fit` "spgp", "vfe",
        "smola-bartlett", "keerthi-chu" or "seeger".
    kernel : Kernel, type, str or None
        For methods other than "online": a class of kernels or its name, to be tuned; a kernel to
        start from; or, with `noise`, a kernel to use as it is. RBF, with a length-scale for each
        feature, if None.
    noise : float, optional
        The noise variance: that of a kernel used as it is, or else the start of the search.
    budget : float, callable, None or "auto"
        The budget, for methods that have one; "auto" is the method's default.
    max_size : int, None or "auto"
        The most points to keep, for methods with a cap or a size; "auto" is 300, None is no cap.
    warmup : int, default 300
        The number of samples used for tuning.
    scale : bool, default False
        Whether to scale features and targets by their means and standard deviations in the first
        `warmup` samples. Kernel, noise and options are then in those units; predictions are not.
    options : dict, optional
        Other options of the method, by name, such as `{"forgetting": 0.999}`.
    random_state : int, RandomState or None, default 0
        Seed of the search and of methods that draw random numbers.

    Attributes
    ----------
    model_ : OnlineGP or SelfTuning
        The model inside.
    encoder_ : pogp.encoding.Encoder
        What makes its inputs of the features; `encoder_.labels` names them.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X has them.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(-3, 3, (500, 1))
    >>> y = 10 + np.sin(2 * X[:, 0]) + 0.1 * np.random.default_rng(1).normal(size=500)
    >>> regressor = POGRegressor().fit(X[:400], y[:400])
    >>> regressor.score(X[400:], y[400:]) > 0.97
    True
    >>> mean, std = regressor.predict(X[400:], return_std=True)
    """

    def __init__(
        self,
        method: str = "online",
        *,
        kernel: object = None,
        noise: float | None = None,
        budget: float | Budget | Literal["auto"] | None = "auto",
        max_size: int | Literal["auto"] | None = "auto",
        warmup: int = 300,
        scale: bool = False,
        options: Mapping[str, Any] | None = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.method = method
        self.kernel = kernel
        self.noise = noise
        self.budget = budget
        self.max_size = max_size
        self.warmup = warmup
        self.scale = scale
        self.options = options
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit a new model to samples.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Inputs.
        y : array-like of shape (n,) or (n, k)
            Targets. Several outputs need the method "online", "absorbing", "sogp", "mcintire",
            "krls-ald" or "krls-t".
        sample_weight : array-like of shape (n,), optional
            The noise variance of a sample is that of the others over its weight. Samples of weight
            zero are left out. Weights need a method that takes several outputs. They are relative:
            they are divided by their mean, and predictions are of a row of average weight. Only
            with a kernel and a noise to use as they are, the noise is that of weight 1.

        Returns
        -------
        self
        """
        model = self._beginning()
        cells, y = self._checked(X, y, reset=True, least=2 if model.warming_up else 1)
        encoder = Encoder.of(self._names(), cells)
        finds_noise = self.noise is None or model.warming_up
        samples = _weighed(cells, y, sample_weight, relative=finds_noise)
        self.model_ = encoding.fit(model, encoder, *samples)
        self.encoder_ = encoder
        return self

    @available_if(_learns_online)
    def partial_fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn further samples, with a method that learns online.

        Batches give the same model as `fit` on all samples, once there are `warmup` samples, if the
        mean of their weights is 1. With "streaming-vfe" each call also ends a mini-batch.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Inputs.
        y : array-like of shape (n,) or (n, k)
            Targets.
        sample_weight : array-like of shape (n,), optional
            Weights, as in `fit`, but not divided by their mean, which is not known yet: an ordinary
            sample has weight 1, and predictions are of such a row.

        Returns
        -------
        self
        """
        first = not hasattr(self, "model_")
        model = self._beginning() if first else self.model_
        cells, y = self._checked(X, y, reset=first, least=1)
        encoder = Encoder.of(self._names(), cells) if first else self.encoder_
        encoding.learn(model, encoder, *_weighed(cells, y, sample_weight))
        self.model_, self.encoder_ = model, encoder
        return self

    def predict(
        self,
        X: ArrayLike,
        return_std: bool = False,
        return_cov: bool = False,
        latent: bool = False,
    ) -> Array | tuple[Array, Array]:
        """Predict y at the rows of X.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Inputs.
        return_std : bool, default False
            Whether to return the standard deviation too: that of a row of average weight.
        return_cov : bool, default False
            Whether to return the covariance too.
        latent : bool, default False
            Whether to exclude the noise. scikit-learn's `GaussianProcessRegressor` includes it only
            if its kernel has a `WhiteKernel`.

        Returns
        -------
        mean : ndarray of shape (n,) or (n, k)
        std : ndarray of shape (n,) or (n, k), if `return_std`
        cov : ndarray of shape (n, n) or (n, n, k), if `return_cov`
        """
        if return_std and return_cov:
            raise ValueError("return_std and return_cov are both True; expected at most one")
        filled = self._queries(X)
        mean, variance = encoding.mixed(self.model_, filled, self.encoder_.dimension, latent)
        if return_cov:
            covariance = self.model_.covariance(inputs_of(filled, self.encoder_.dimension), latent)
            diagonal = np.arange(len(mean))
            covariance[diagonal, diagonal] = variance
            return mean, covariance
        return (mean, np.sqrt(variance)) if return_std else mean

    def interval(self, X: ArrayLike, level: float = 0.95) -> tuple[Array, Array]:
        """Return the band that contains a target with a given probability.

        Where the noise has heavy tails, the band of `OnlineGP` is that of its tails.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Inputs.
        level : float, default 0.95
            The probability, between 0 and 1.

        Returns
        -------
        lower, upper : ndarray of shape (n,) or (n, k)
        """
        mean, deviation = self.predict(X, return_std=True)
        half = self.model_.reach(level) * deviation
        return mean - half, mean + half

    def sample_y(
        self,
        X: ArrayLike,
        n_samples: int = 1,
        random_state: int | np.random.RandomState | None = 0,
        latent: bool = False,
    ) -> Array:
        """Draw y jointly at the rows of X.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Inputs. Missing values are at their expectation, for certain.
        n_samples : int, default 1
            Number of draws.
        random_state : int, RandomState or None, default 0
            Seed of the draws.
        latent : bool, default False
            Whether to exclude the noise.

        Returns
        -------
        ndarray of shape (n, n_samples) or (n, k, n_samples)
        """
        inputs = inputs_of(self._queries(X), self.encoder_.dimension)
        draws = self.model_.sample(inputs, n_samples, _seed(random_state), latent)
        return np.moveaxis(draws, 0, -1)

    def _beginning(self) -> Made:
        """Return the model before it has learned anything; raise for parameters that are wrong."""
        if isinstance(self.kernel, TheirKernel) and self.noise is None:
            raise ValueError(
                f"kernel is scikit-learn's {self.kernel!r}, which cannot be tuned here; expected "
                "one of pogp, such as pogp.RBF(lengthscale=1.0) or the name 'RBF', or a noise "
                "beside it, to use it as it is"
            )
        return made_for(self, _seed(self.random_state))

    def _checked(
        self, X: ArrayLike, y: ArrayLike, *, reset: bool, least: int
    ) -> tuple[list[Cells], Any]:
        """Return the columns of X, and y."""
        checked, y = validate_data(
            self,
            _as_cells(X),
            y,
            reset=reset,
            dtype=None,
            ensure_all_finite=False,
            y_numeric=True,
            multi_output=self._takes_several_outputs,
            ensure_min_samples=least,
        )
        return list(checked.T), y

    def _queries(self, X: ArrayLike) -> list[Filled]:
        check_is_fitted(self)
        options = {"reset": False, "dtype": None, "ensure_all_finite": False}
        checked = validate_data(self, _as_cells(X), **options)
        cells = list(checked.T)
        warn_of_strangers(self.encoder_, cells)
        return encoding.fill(self.model_, self.encoder_, cells)

    def _names(self) -> list[str]:
        """Return the names of the features, x0, x1, ... where they have none."""
        unnamed = [f"x{i}" for i in range(self.n_features_in_)]
        return list(getattr(self, "feature_names_in_", unnamed))

    @property
    def _takes_several_outputs(self) -> bool:
        kind = METHODS.get(self.method)
        return kind is not None and kind.multi_output

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = self._takes_several_outputs
        tags.input_tags.allow_nan = True
        return tags


def _as_cells(X: Any) -> Any:
    """Return a frame of columns that are not all numbers as one of objects, and all else as it is.

    NumPy finds no type that numbers and times have in common. The categories of pandas become
    texts, also where they are numbers.
    """
    if not hasattr(X, "columns") or not hasattr(X, "astype"):
        return X
    if {getattr(kind, "kind", "O") for kind in X.dtypes} <= set("biuf"):
        return X
    frame = X.copy(deep=False)
    for place, kind in enumerate(X.dtypes):
        categories = getattr(kind, "categories", None)
        if categories is not None and categories.dtype.kind in "biuf":
            names = [category_of(category) for category in categories]
            frame.isetitem(place, X.iloc[:, place].cat.rename_categories(names))
    return frame.astype(object)


def _seed(random_state: int | np.random.RandomState | None) -> int:
    """Return a seed for what scikit-learn calls a random state."""
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31))


def _weighed(
    cells: list[Cells], y: Any, weight: ArrayLike | None, *, relative: bool = False
) -> tuple[list[Cells], Any, Array | None]:
    """Return the samples that have a weight, with their weights; None if all are one.

    Relative weights are divided by their mean.
    """
    if weight is None:
        return cells, y, None
    weights = _check_sample_weight(weight, y, dtype=np.float64, ensure_non_negative=True)
    some = weights > 0
    kept, y, weights = [column[some] for column in cells], y[some], weights[some]
    if relative and len(weights):
        weights = np.ones_like(weights) if np.ptp(weights) == 0 else weights / weights.mean()
    return kept, y, None if (weights == 1).all() else weights

"""Posteriors: what is known of the function, in forms that can grow and shrink."""

from pogp.posteriors.absorbed.posterior import AbsorbedPosterior
from pogp.posteriors.cholesky import CholeskyPosterior
from pogp.posteriors.retained.posterior import RetainedPosterior

__all__ = ["AbsorbedPosterior", "CholeskyPosterior", "RetainedPosterior"]

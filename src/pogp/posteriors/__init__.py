"""Posteriors: what is known of the function, kept in a form that can grow and shrink."""

from pogp.posteriors.absorbed import AbsorbedPosterior
from pogp.posteriors.factored import FactoredPosterior
from pogp.posteriors.retained import RetainedPosterior

__all__ = ["AbsorbedPosterior", "FactoredPosterior", "RetainedPosterior"]

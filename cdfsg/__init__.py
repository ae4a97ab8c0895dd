"""Replication suite for stochastic optimization over the generalized Stiefel manifold."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cdfsg.estimator import StochasticGCCA

__all__ = ["StochasticGCCA"]


def __getattr__(name: str) -> Any:
    """Import the estimator at its first use: scikit-learn takes a second to load."""
    if name == "StochasticGCCA":
        from cdfsg.estimator import StochasticGCCA

        return StochasticGCCA
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""A scikit-learn style front to the paper's algorithms, for people with their own data."""

from cdfsg.estimator.convergence import Progress
from cdfsg.estimator.gcca import StochasticGCCA
from cdfsg.estimator.inference import permutation_test

__all__ = ["Progress", "StochasticGCCA", "permutation_test"]

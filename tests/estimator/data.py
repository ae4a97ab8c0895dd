"""Small data that the tests of the estimator share."""

from functools import partial

import numpy as np

from cdfsg import StochasticGCCA, metrics
from cdfsg.datasets import load_digits, make_views

online = partial(StochasticGCCA, algorithm="cdfsg-ada")  # what is narrow would be solved exactly

CORRELATIONS = (0.9, 0.8, 0.6, 0.4)


def synthetic(n_samples=2000, sizes=(8, 6), seed=0, **settings):
    """Views of known sample correlations, as a list of float64 arrays."""
    settings = {"condition": 3.0, "offset": 1.0, **settings}
    drawn = make_views(n_samples, sizes, CORRELATIONS, seed, exact=True, **settings)
    return [np.ascontiguousarray(drawn.data[:, view]) for view in drawn.slices]


def digits():
    """The halves of the digits, in units of pixels."""
    views = load_digits()
    return [views.data[:, view] / 16 for view in views.slices]


def covariance(views):
    """Covariance of the views side by side, with divisor N."""
    return np.cov(np.hstack(views).T, bias=True)


def exact(views, p):
    """Sum of the p largest canonical correlations, or of the p largest eigenvalues of three or more views."""
    sizes = tuple(view.shape[1] for view in views)
    scale = np.concatenate([np.where(view.std(axis=0) > 0, view.std(axis=0), 1) for view in views])
    correlation = covariance(views) / np.outer(scale, scale)
    return metrics.generalised_eigenvalues(correlation, sizes)[:p].sum()


def stacked(model):
    """Weights of all views, in the units of the data."""
    return np.concatenate([w / s[:, None] for w, s in zip(model.weights_, model.scales_, strict=True)])


def moments(model, views):
    """``x_i' S_ij x_j`` of the weights, shape (m, m, p, p)."""
    return metrics.cross_moments(stacked(model)[None], covariance(views), tuple(v.shape[1] for v in views))[:, :, 0]


def chunks(views, size):
    """The rows in chunks, as an iterator."""
    return ([view[k : k + size] for view in views] for k in range(0, len(views[0]), size))

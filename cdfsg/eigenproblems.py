r"""Two more problems of the family: the generalised eigenvalue problem and linear discriminant analysis.

Both have ``f(X) = - tr(X'AX) / 2`` subject to ``X'MX = I_p``, where A and M are known through samples: a row of the
data holds the vectors of a sample of A and of one of M.  The optimum is minus half the sum of the p largest eigenvalues
of the pencil (A, M), attained by its leading eigenvectors.  The exact form of each is `cdfsg.problems.Quadratic` of
``-A`` with the M that `pencil` gives.
"""

from collections.abc import Sequence
from math import inf

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from cdfsg.checks import require_finite, require_shape, require_whole
from cdfsg.datasets.views import Provenance, Views
from cdfsg.linalg import Array

OWN = Provenance("arrays of the caller", "none", "original")


class SampledGEVP:
    r"""``f(X) = - tr(X'AX) / 2`` subject to ``X'MX = I`` with ``A = E[a a']`` and ``M = E[b b']``, on minibatches.

    A row of the data is a pair (a, b) of vectors of length d; its two scores are ``a'X`` and ``b'X``.  A minibatch
    gives A and M without bias.
    """

    def __init__(self, d: int) -> None:
        require_whole("d", d, 1, what="the rows of X")
        self.n = int(d)
        self.sizes: tuple[int, ...] = (self.n, self.n)

    def pencil(self, covariance: Array) -> tuple[Array, Array]:
        """A and M, each (d, d), from `Views.covariance` (2d, 2d)."""
        d = self.n
        return covariance[:d, :d], covariance[d:, d:]

    def scores(self, samples: Array, X: Array) -> Array:
        """``a'X`` and ``b'X`` of every row, shape (s, lanes, 2l, p)."""
        return self._vectors(samples)[:, None] @ X

    def adjoint(self, samples: Array, R: Array) -> Array:
        """Sum over the rows of ``a R_0 + b R_1``, shape (lanes, n, p)."""
        return (self._vectors(samples).mT[:, None] @ R).sum(axis=0)

    def constraint(self, P: Array) -> Array:
        """``X' M_theta X = (1/l) P_1' P_1``, shape (lanes, p, p)."""
        return P[:, 1::2].mT @ P[:, 1::2] / (P.shape[1] // 2)

    def constraint_factor(self, P: Array) -> Array:
        """``(0, P_1 / l)``: its adjoint is ``M_theta X``."""
        S = np.zeros_like(P)
        S[:, 1::2] = P[:, 1::2] / (P.shape[1] // 2)
        return S

    def raw_gradient(self, P: Array) -> Array:
        """``(- P_0 / l, 0)``: its adjoint is ``grad f_xi(X) = - A_xi X``."""
        R = np.zeros_like(P)
        R[:, ::2] = P[:, ::2] / -(P.shape[1] // 2)
        return R

    def _vectors(self, samples: Array) -> Array:
        """All a and b of a minibatch one below the other, shape (s, 2l, d)."""
        return samples.reshape(len(samples), -1, self.n)


def generalised_eigenproblem(
    a: ArrayLike, b: ArrayLike, *, centred: bool = False, name: str = "generalised eigenproblem"
) -> tuple[Views, SampledGEVP]:
    """The data and the problem whose A and M are the second moments of the rows of `a` and of `b`.

    Parameters
    ----------
    a, b : array_like (N, d)
        Samples; row i of both enters the same minibatch.
    centred : bool
        Subtract the means, so that A and M are covariances.
    name : str
        Name of the data.
    """
    a, b = _table("a", a), _table("b", b)
    require_shape("b", b, a.shape, "that of a")
    return Views(name, np.hstack([a, b]), 2 * a.shape[1:], 1.0, centred, OWN), SampledGEVP(a.shape[1])


class SampledLDA:
    r"""``f(X) = - tr(X' S_b X) / 2`` subject to ``X' S_t X = I``: linear discriminant analysis on minibatches.

    A row of the data is (x, y), d features and the label as a one-hot vector of k classes.  Both are centred over all N
    rows, as a `Views` with ``centred=True`` serves them; the frequencies ``pi`` of the classes added to y give the
    one-hot vector back.  The scatters are

    * between classes: ``S_b = sum_c pi_c m_c m_c'`` with the means m_c of the classes, which is also
      ``S_xy S_yy^+ S_yx``, so that LDA is canonical correlation analysis of x with y;
    * total: ``S_t = E[x x'] = S_b + S_w``.  The pencil (S_b, S_w) of the textbooks has the same eigenvectors; an
      eigenvalue mu of it is ``mu / (1 + mu)`` here.

    Over pairs of rows, ``S_b = (1/N^2) sum_ij w_ij x_i x_j'`` with ``w_ij = [same class c] / pi_c - 1``.  A minibatch
    of l rows, drawn without replacement, gives

    ``S_xi = (1 - 1/N) / (l (l-1)) sum_{i != j} w_ij x_i x_j' + 1 / (N l) sum_i w_ii x_i x_i'``,

    which is **unbiased** for S_b, since pairs i != j are equally likely, and so are rows; class means of the minibatch
    would be biased by about ``(k-1)/l S_w``.  For rows drawn afresh N is infinite, and S_xi is unbiased for the
    distribution whose mean and priors are given.

    The k scores of a row are ``x'X`` at its class and 0 at the others, so that no l-by-l matrix is formed.

    Parameters
    ----------
    d : int
        Number of features.
    priors : sequence of float (k,)
        Frequencies pi of the classes, in the order of the one-hot columns: ``views.mean[d:]``.
    n_samples : float
        Number N of rows to draw from without replacement; infinite for rows drawn afresh.
    """

    def __init__(self, d: int, priors: Sequence[float] | Array, n_samples: float = inf) -> None:
        require_whole("d", d, 1, what="the rows of X")
        pi = np.asarray(priors)
        several = pi.dtype.kind in "iuf" and pi.ndim == 1 and len(pi) > 1
        if not (several and (pi > 0).all() and abs(pi.sum() - 1) < 1e-9):
            expected = "positive numbers that sum to 1, one per class, as views.mean[d:] are"
            raise ValueError(f"priors must be two or more {expected}, got {pi.tolist()}")
        if not (isinstance(n_samples, int | float | np.number) and n_samples >= 2):
            raise ValueError(f"n_samples must be at least 2, got {n_samples!r}; leave it out for rows drawn afresh")
        self.priors = pi.astype(np.float64)
        self.n_samples = float(n_samples)
        self.n = int(d)
        self.sizes: tuple[int, ...] = (self.n, len(self.priors))

    def pencil(self, covariance: Array) -> tuple[Array, Array]:
        """``S_b`` and ``S_t``, each (d, d), from `Views.covariance` (d + k, d + k)."""
        d = self.n
        cross = covariance[:d, d:]  # column c is pi_c m_c
        return (cross / self.priors) @ cross.T, covariance[:d, :d]

    def scores(self, samples: Array, X: Array) -> Array:
        """``x'X`` at the place of the class, shape (s, lanes, l k, p)."""
        xX = samples[:, None, :, : self.n] @ X
        P = self._one_hot(samples)[:, None, :, :, None] * xX[:, :, :, None]
        return P.reshape(*xX.shape[:2], -1, X.shape[2])

    def adjoint(self, samples: Array, R: Array) -> Array:
        """Sum over the rows of ``x R_c`` with the class c, shape (lanes, n, p)."""
        of_class = self._one_hot(samples)[:, None, :, None] @ self._by_class(R)
        return (samples[:, None, :, : self.n].mT @ of_class[:, :, :, 0]).sum(axis=0)

    def constraint(self, P: Array) -> Array:
        """``X' S_theta X``, the mean of ``(x'X)' x'X`` over the rows, shape (lanes, p, p)."""
        xX = self._by_class(P).sum(axis=2)
        return xX.mT @ xX / xX.shape[1]

    def constraint_factor(self, P: Array) -> Array:
        """``P / l``: its adjoint is ``S_theta X``."""
        return P / (P.shape[1] // len(self.priors))

    def raw_gradient(self, P: Array) -> Array:
        """``R_c = - sum_j w_cj x_j'X``, weighted as in S_xi: its adjoint is ``grad f_xi(X) = - S_xi X``."""
        by_class = self._by_class(P)
        size = by_class.shape[1]
        if size < 2:
            raise ValueError("the scatter between classes needs pairs of rows, so batch_size >= 2, got 1")
        of_pairs = (1 - 1 / self.n_samples) / (size * (size - 1))
        of_rows = 1 / (self.n_samples * size)
        inverse = (1 / self.priors).astype(P.dtype)[:, None]
        sums = by_class.sum(axis=1, keepdims=True)
        with_all = inverse * sums - sums.sum(axis=2, keepdims=True)  # sum_j w_cj x_j'X, its own row included
        return ((of_pairs - of_rows) * (inverse - 1) * by_class - of_pairs * with_all).reshape(P.shape)

    def _by_class(self, P: Array) -> Array:
        """Scores with an axis for the classes, shape (..., l, k, p)."""
        return P.reshape(*P.shape[:-2], -1, len(self.priors), P.shape[-1])

    def _one_hot(self, samples: Array) -> Array:
        """Labels of the rows as one-hot vectors, shape (s, l, k)."""
        return samples[..., self.n :] + self.priors.astype(samples.dtype)


def discriminant_analysis(X: ArrayLike, y: ArrayLike, *, name: str = "labelled data") -> tuple[Views, SampledLDA]:
    """The data and the problem of linear discriminant analysis from features and labels.

    Parameters
    ----------
    X : array_like (N, d)
        Features.
    y : array_like (N,)
        Labels that can be sorted; the classes are in the order of ``numpy.unique``.
    name : str
        Name of the data.
    """
    features, labels = _table("X", X), np.asarray(y)
    require_shape("y", labels, features.shape[:1], "a label per row of X; y.argmax(axis=1) makes labels of a one-hot y")
    missing = [label for label in labels.tolist() if label is None or label != label]
    if missing or np.ma.is_masked(y):
        raise ValueError(f"y must have a label in every row, got {missing[:1] or 'masked ones'}; drop such rows")
    try:
        classes, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    except TypeError as error:
        kinds = ", ".join(sorted({type(label).__name__ for label in labels.tolist()}))
        raise ValueError(f"y must have labels of one type that has an order, got {kinds}; use text") from error
    if len(classes) < 2 or counts.min() < 2:
        found = dict(zip(classes.tolist(), counts.tolist(), strict=True))
        raise ValueError(f"y must have two classes or more, of two samples or more, got {found}; drop or join classes")
    d, k = features.shape[1], len(classes)
    data = np.hstack([features, np.eye(k, dtype=features.dtype)[codes]])
    return Views(name, data, (d, k), 1.0, True, OWN), SampledLDA(d, counts / len(labels), len(labels))


def _table(argument: str, values: ArrayLike) -> Array:
    """Finite numbers, a row per sample."""
    if np.ma.is_masked(values) or sparse.issparse(values):
        found = f"{type(values).__name__}; drop or fill in masked rows, or use .toarray()"
        raise ValueError(f"{argument} must be a plain array of shape (N, d), got {found}")
    try:
        table = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{argument} must have rows of one length: {error}") from error
    require_shape(argument, table, ("N", "d"), "a row per sample")
    require_finite(argument, table)
    return table

r"""The constraint dissolving penalty function (CDFCP): deterministic mathematics, equation by equation.

Notation of the paper: ``C = X'MX``, ``A(X) = X (3I - C)/2``, ``G(X) = grad f(A(X))``, ``Psi = sym``,
``Lambda(X) = Psi(X'G(X))``.  Where a printed formula is wrong, the corrected one stands here and its docstring says
what is printed.
"""

from dataclasses import dataclass

import numpy as np

from cdfsg.checks import require_positive, require_semidefinite, require_shape, require_whole
from cdfsg.linalg import Array, eye_like, sym
from cdfsg.problems import Problem


def dissolving_factor(C: Array) -> Array:
    """``Q(C) = (3 I - C) / 2`` of each trailing matrix, the factor in ``A(X) = X Q(X'MX)`` (CDF)."""
    return (3 * eye_like(C) - C) / 2


def multiplier(XtG: Array, Y: Array, beta: float) -> Array:
    """``T = -Psi(X'G) + beta Psi(Y^2 - I)``, so that ``W(X, Y) = G Q(Y)' + M X T`` (eq:H, corrected).

    `XtG` is ``X'G``, Y the tracked value of ``X'MX``.  With the printed ``V (V^2 - I)`` in H the last term would be
    ``beta (Y^2 - I/3)``, whose minimiser is not feasible; ``V (V^2 - 3I)`` agrees with (CDFCP).
    """
    return beta * (sym(Y @ Y) - eye_like(Y)) - sym(XtG)


@dataclass(frozen=True)
class Penalty:
    """The penalty function h of a problem and its derivatives.

    Parameters
    ----------
    problem : Problem
        The objective f on n-by-p matrices.
    M : array (n, n)
        Symmetric positive semidefinite.
    beta : float
        Penalty parameter, positive.
    """

    problem: Problem
    M: Array
    beta: float

    def __post_init__(self) -> None:
        if isinstance(self.problem, type | str) or not hasattr(self.problem, "gradient"):
            raise ValueError(f"problem must be an exact problem, got {self.problem!r}; make one, as by Quadratic(A)")
        require_semidefinite("M", np.asarray(self.M), rtol=1e-5)
        require_positive(beta=self.beta)

    def constraint(self, X: Array) -> Array:
        """``C(X) = X'MX`` (eq:c), shape (p, p)."""
        require_shape("X", X, (len(self.M), "p"))
        return sym(X.T @ self.M @ X)

    def dissolve(self, X: Array) -> Array:
        """``A(X) = X (3I - X'MX) / 2``, the constraint dissolving operator of (CDF)."""
        return X @ dissolving_factor(self.constraint(X))

    def value(self, X: Array) -> float:
        """``h(X) = f(A(X)) + beta/6 tr(C (C^2 - 3I))`` (CDFCP)."""
        return self.surrogate(X, self.constraint(X))

    def gradient(self, X: Array) -> Array:
        """``G Q(C) - M X Lambda + beta M X (C^2 - I)`` (eq:gradh)."""
        C = self.constraint(X)
        G = self.problem.gradient(self.dissolve(X))
        return G @ dissolving_factor(C) + self.M @ X @ multiplier(X.T @ G, C, self.beta)

    def hessian(self, X: Array, D: Array) -> Array:
        """Hessian of h at X applied to D (eq:hessh, corrected).

        The printed last term ``4 beta M X Psi(X'MD) C`` holds only where ``Psi(X'MD)`` and C commute.
        """
        M, beta = self.M, self.beta
        C = self.constraint(X)
        Q = dissolving_factor(C)
        G = self.problem.gradient(self.dissolve(X))
        S = sym(X.T @ M @ D)
        J = self.problem.hessian(self.dissolve(X), D @ Q - X @ S)  # eq:GD
        objective = J @ Q - G @ S - M @ D @ sym(X.T @ G) - M @ X @ sym(D.T @ G + X.T @ J)
        barrier = M @ D @ (C @ C - eye_like(C)) + 2 * M @ X @ (S @ C + C @ S)
        return objective + beta * barrier

    def lagrangian_gradient(self, X: Array) -> Array:
        """``L(X) = grad f(X) - M X Psi(X' grad f(X))`` (eq:regrad)."""
        G = self.problem.gradient(X)
        return G - self.M @ X @ sym(X.T @ G)

    def surrogate(self, U: Array, V: Array) -> float:
        """``H(U, V) = f(U Q(V)) + beta/6 tr(V (V^2 - 3I))`` (eq:H, where ``V^2 - I`` is printed)."""
        barrier = float(np.trace(V @ (V @ V - 3 * eye_like(V))))
        return self.problem.value(U @ dissolving_factor(V)) + self.beta / 6 * barrier

    def direction(self, X: Array, Y: Array) -> Array:
        """``W(X, Y) = G Q(Y)' + M X T`` with ``G = grad f(X Q(Y))``; equals grad h where ``Y = C(X)``."""
        Q = dissolving_factor(Y)
        G = self.problem.gradient(X @ Q)
        return G @ Q.T + self.M @ X @ multiplier(X.T @ G, Y, self.beta)

    def threshold(self, p: int) -> float:
        """The threshold ``beta~ = 12 kappa (3 (p+1) L_g + s^(1/2) L_0) / s``.

        Here s and kappa are the smallest eigenvalue and the condition number of M, and ``L_0 = ||grad f(0)||``.
        Raises ValueError if M is singular to rounding or f has no L_g.
        """
        require_whole("p", p, 1, what="the columns of X")
        if p > len(self.M):
            raise ValueError(f"p must be at most n = {len(self.M)}, got {p}; take fewer columns of X")
        spectrum = np.linalg.eigvalsh(self.M)
        smallest, largest = float(spectrum[0]), float(spectrum[-1])
        if smallest <= len(spectrum) * np.finfo(float).eps * largest:
            spread = f"{smallest:.3g} to {largest:.3g}"
            raise ValueError(f"the threshold needs a positive definite M, got eigenvalues from {spread}")
        at_zero = float(np.linalg.norm(self.problem.gradient(np.zeros((len(spectrum), p)))))
        growth = 3 * (p + 1) * self.problem.lipschitz + smallest**0.5 * at_zero
        return float(12 * (largest / smallest) * growth / smallest)

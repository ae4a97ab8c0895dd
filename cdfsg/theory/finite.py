"""A stochastic problem with finitely many outcomes, on which expectations over all paths are sums.

It is driven by the very `step` of the solvers: every lane gets a draw of its own, so that enumerating the draws of
one iteration means repeating each lane once per outcome.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from cdfsg.linalg import Array, lane_gram, sym
from cdfsg.penalty import Penalty
from cdfsg.problems import Quadratic
from cdfsg.solvers.cdfsg import CDFSG, TrackingState, sampled_direction
from cdfsg.solvers.draws import Draw
from cdfsg.theory.check import Tally

OBJECTIVE, CONSTRAINT = 0, 1
"""The two halves of a row: it enters f_xi by the first and M_theta by the second."""


@dataclass(eq=False)
class FinitePencil:
    """``min E sign/2 ||U_xi X||^2 / r`` subject to ``X' E[V_theta' V_theta / r] X = I`` over equally likely outcomes.

    It satisfies the blanket assumptions wherever M is positive definite: f is quadratic.  It is a `SampledProblem`
    whose minibatches are arrays ``(rows, 2, lanes, n)``, a minibatch per lane.

    Attributes
    ----------
    U, V : array (outcomes, r, n)
        Rows that make ``A_xi = sign U_xi'U_xi / r`` and ``M_theta = V_theta'V_theta / r``.
    sign : {1, -1}
        Whether f is convex or concave.

    Raises
    ------
    ValueError
        If U and V differ in shape or the sign is another.
    """

    U: Array
    V: Array
    sign: int = -1

    def __post_init__(self) -> None:
        """Refuse shapes that do not fit."""
        if self.U.ndim != 3 or self.U.shape != self.V.shape or self.sign not in (1, -1):
            raise ValueError(
                f"U and V must both have the shape (outcomes, rows, n) and sign be 1 or -1, got {self.U.shape}, "
                f"{self.V.shape} and {self.sign!r}"
            )
        self.sizes: tuple[int, ...] = (self.U.shape[2],)
        self.n = self.U.shape[2]

    @property
    def outcomes(self) -> int:
        """Number of equally likely outcomes of theta, and of xi."""
        return len(self.U)

    @cached_property
    def A_xi(self) -> Array:
        """Hessians of the f_xi, shape (outcomes, n, n)."""
        product: Array = self.sign * np.swapaxes(self.U, 1, 2) @ self.U / self.U.shape[1]
        return product

    @cached_property
    def M_theta(self) -> Array:
        """Constraint matrices, shape (outcomes, n, n)."""
        product: Array = np.swapaxes(self.V, 1, 2) @ self.V / self.V.shape[1]
        return product

    def penalty(self, beta: float) -> Penalty:
        """The exact h."""
        return Penalty(Quadratic(sym(self.A_xi.mean(axis=0))), sym(self.M_theta.mean(axis=0)), beta)

    # --- the protocol of sampled problems

    def project(self, Z: Array, X: Array) -> Array:
        """``U X`` and ``V X``, shape (rows, 2, lanes, p)."""
        P: Array = np.einsum("rvkn,nkp->rvkp", Z, X)
        return P

    def lift(self, Z: Array, R: Array, out: Array | None = None) -> Array:
        """Adjoint of `project`, shape (n, lanes, p)."""
        product: Array = np.einsum("rvkn,rvkp->nkp", Z, R)
        return product

    def constraint(self, P: Array) -> Array:
        """``X' M_theta X``, shape (lanes, p, p)."""
        rows = P[:, CONSTRAINT]
        return lane_gram(rows, rows) / len(P)

    def constraint_factor(self, P: Array) -> Array:
        """``V X / r``, and zero for the other half."""
        return _half(P, CONSTRAINT, 1 / len(P))

    def gradient_factor(self, P: Array) -> Array:
        """``sign U X / r``, and zero for the other half."""
        return _half(P, OBJECTIVE, self.sign / len(P))

    # --- draws

    def draw(self, theta: Array, xi: Array) -> Draw:
        """The minibatches of the outcomes named, one per lane; theta and xi have the shape (lanes,)."""
        r = self.U.shape[1]
        return Draw(np.concatenate([self._rows(theta), self._rows(xi)]), slice(0, r), slice(r, None))

    def every_draw(self, lanes: int) -> Draw:
        """All outcomes of (theta, xi) for each of `lanes` states, which must have been repeated by `branched`."""
        theta, xi = np.divmod(np.arange(self.outcomes**2), self.outcomes)
        return self.draw(np.tile(theta, lanes), np.tile(xi, lanes))

    def first(self, theta: Array) -> Array:
        """The minibatch of theta_0, which makes Y_0."""
        return self._rows(theta)

    def gradient_of_h(self, X: Array, beta: float) -> Array:
        """Exact gradient of h in every lane, ``W(X, C(X))`` on a minibatch that has A and M for its A_xi and M_theta.

        Parameters
        ----------
        X : array (n, lanes, p)
        beta : float

        Returns
        -------
        array (n, lanes, p)
        """
        lanes = X.shape[1]
        rows = np.broadcast_to(self._mean_rows[:, :, None], (X.shape[0], 2, lanes, X.shape[0]))
        P = self.project(rows, X)
        C = sym(self.constraint(P))
        return sampled_direction(self, Draw(rows, slice(None), slice(None)), P, C, beta)

    @cached_property
    def _mean_rows(self) -> Array:
        """Roots of ``n |A|`` and ``n M``, shape (n, 2, n)."""
        roots = []
        for matrix in (self.sign * self.A_xi.mean(axis=0), self.M_theta.mean(axis=0)):
            values, vectors = np.linalg.eigh(sym(matrix) * len(matrix))
            roots.append(np.sqrt(np.maximum(values, 0))[:, None] * vectors.T)
        return np.stack(roots, axis=1)

    def _rows(self, outcome: Array) -> Array:
        both = np.stack([self.U[outcome], self.V[outcome]], axis=1)  # (lanes, 2, r, n)
        return both.transpose(2, 1, 0, 3)


def _half(P: Array, half: int, scale: float) -> Array:
    factor = np.zeros_like(P)
    factor[:, half] = scale * P[:, half]
    return factor


def branched(state: TrackingState, count: int) -> TrackingState:
    """The state with every lane repeated `count` times, neighbours being copies."""
    repeated = {
        entry.name: np.repeat(getattr(state, entry.name), count, axis=entry.metadata["lane_axis"])
        for entry in fields(state)
    }
    return type(state)(**repeated)


def started(
    solver: CDFSG, toy: FinitePencil, X0: Array, settings: Mapping[str, float], null_direction: bool = True
) -> TrackingState:
    """The state at k = 0 over all outcomes of theta_0, and of xi_0 if D_0 is drawn.

    Parameters
    ----------
    solver : CDFSG or CDFSGAda
    toy : FinitePencil
    X0 : array (n, p)
    settings : mapping
        ``s1`` and ``s2`` of the solver: alpha = s2, b = s2 / s1.
    null_direction : bool
        ``D_0 = 0``, as Algorithm 1 says; otherwise ``D_0 = W_{xi_0,theta_0}(X_0, Y_0)``, as eq:updated says.
    """
    outcomes = toy.outcomes if null_direction else toy.outcomes**2
    theta, xi = (np.arange(outcomes), np.zeros(outcomes, int)) if null_direction else np.divmod(
        np.arange(outcomes), toy.outcomes
    )  # fmt: skip
    lanes = np.repeat(X0[:, None, :], outcomes, axis=1)
    values = {name: np.full(outcomes, value) for name, value in settings.items()}
    state = solver.start(toy, lanes, values, toy.first(theta))
    if not null_direction:
        draw = toy.draw(theta, xi)
        state.D = sampled_direction(toy, draw, toy.project(draw.rows, lanes), state.Y, solver.beta)
    return state


def every_path(solver: CDFSG, toy: FinitePencil, state: TrackingState, steps: int) -> Iterator[TrackingState]:
    """The states at k = 0, ..., steps over all paths; at each k all lanes are equally likely."""
    yield state
    for _ in range(steps):
        draw = toy.every_draw(state.X.shape[1])
        state = branched(state, toy.outcomes**2)
        solver.step(toy, state, draw, 0)
        yield state


def expected(per_lane: Array) -> float:
    """Mean over equally likely lanes."""
    return float(np.mean(per_lane))


def squared_norms(a: Array, lane_axis: int) -> Array:
    """Squared Frobenius norm per lane."""
    axes = tuple(axis for axis in range(a.ndim) if axis != lane_axis)
    total: Array = np.sum(a * a, axis=axes)
    return total


def random_pencil(
    rng: np.random.Generator, n: int, outcomes: int, rows: int | None = None, condition: float = 1.0
) -> FinitePencil:
    """Gaussian outcomes; M has about the square of `condition` as its condition number, and at least n rows in all."""
    rows = rows or -(-n // outcomes)
    scale = np.geomspace(1, 1 / condition, n)
    U, V = rng.standard_normal((2, outcomes, rows, n))
    return FinitePencil(U * scale, V * scale, int(rng.choice([1, -1])))


def least_penalty(toy: FinitePencil, beta: float, p: int) -> float:
    """The global minimum of h, ``h(X_*)``.

    For quadratic f, h is a sum over the eigenvalues c of ``X'MX``, each paired with an eigenvalue lam of the pencil
    (A, M): ``phi(c) = lam/8 c (3 - c)^2 + beta/6 (c^3 - 3c)``, ``phi' = (1 - c) (3 lam (3 - c)/8 - beta (1 + c)/2)``;
    by von Neumann's trace inequality the minimum is attained at such a pairing.

    Raises
    ------
    ValueError
        If h is unbounded below, which is so for ``beta < -3/4 lam``.
    """
    penalty = toy.penalty(beta)
    root = np.linalg.cholesky(penalty.M)
    half = np.linalg.solve(root, toy.A_xi.mean(axis=0))
    lam = np.linalg.eigvalsh(sym(np.linalg.solve(root, half.T)))
    if beta <= -0.75 * lam.min():
        raise ValueError(f"h is unbounded below: beta = {beta:.4g}, needed is more than {-0.75 * lam.min():.4g}")
    turning = (9 * lam - 4 * beta) / (4 * beta + 3 * lam)
    c = np.stack([np.zeros_like(lam), np.ones_like(lam), np.maximum(turning, 0)])
    phi = lam / 8 * c * (3 - c) ** 2 + beta / 6 * (c**3 - 3 * c)
    return float(np.sort(phi.min(axis=0))[:p].sum())


def constraint_values(M: Array, X: Array) -> Array:
    """``X'MX`` in every lane, X of shape (n, lanes, p), shape (lanes, p, p)."""
    return sym(lane_gram(X, np.einsum("mn,nkp->mkp", M, X)))


def require(tally: Tally, what: str, rounding: float = 1e-9) -> None:
    """Refuse to report a check whose side claim fails, such as the order of a bias.

    Raises
    ------
    ArithmeticError
        The message names the claim and the margin.
    """
    if not tally.holds(rounding):
        margin = f"the least margin of {tally.instances} cases is {tally.margin:.3g}"
        raise ArithmeticError(f"expected that {what}, but {margin}")

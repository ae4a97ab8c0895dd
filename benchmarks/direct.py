"""The engine against Algorithms 1 and 2 as the pseudocode reads, with n-by-n matrices, on MNIST and n-MNIST.

Every step of the direct form makes M_theta and the cross-covariance of xi as dense n-by-n arrays.  Apart from that
nothing is wasted: the products are BLAS's, M_theta X serves the tracker and the direction, both arrays are reused.

l = 100, p = 5, identity merit; one lane alone and per lane in the reported block of 180 lanes.  The direct form takes
half a minute per pass and lane, so it runs the first steps of a pass only, and so does the block; both are
extrapolated to the pass, step by step.  A step of the block counts for as many lanes as are alive in it.
"""

import statistics
import time
from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations, product

import common
import numpy as np

from cdfsg.datasets import Views
from cdfsg.linalg import Array
from cdfsg.paper.compute import views_of
from cdfsg.paper.protocols import GRID, REPORTED_SEEDS
from cdfsg.penalty import dissolving_factor, multiplier
from cdfsg.solvers import SOLVERS
from cdfsg.solvers.cdfsg import CDFSG, CDFSGAda
from cdfsg.solvers.engine import RunResult, initial_points

BATCH_SIZE, P = 100, 5
SETTINGS = {"CDFSG": (0.5, 0.01), "CDFSG-Ada": (0.5, 0.001)}
"""(s1, s2) of the one lane, at which nothing diverges."""
BLOCK_STEPS = 30
DIRECT_STEPS = {"mnist": 40, "nmnist": 10}
DTYPES = {"float32": np.float32, "float64": np.float64}
REPEATS = 5
DATASETS, COMPARED = ("mnist", "nmnist"), ("CDFSG", "CDFSG-Ada")


def constraint_matrix(Z: Array, slices: Sequence[slice], out: Array) -> Array:
    """``M_theta``, the block diagonal of ``Z'Z / l``, written over `out`."""
    Z = Z * Z.dtype.type(len(Z) ** -0.5)  # cheaper than dividing an n-by-n product
    for view in slices:
        out[view, view] = Z[:, view].T @ Z[:, view]
    return out


def cross_covariance(Z: Array, slices: Sequence[slice], out: Array) -> Array:
    """``Z'Z / l`` without the block diagonal, written over `out`."""
    Z = Z * Z.dtype.type(len(Z) ** -0.5)
    for left, right in combinations(slices, 2):
        out[left, right] = Z[:, left].T @ Z[:, right]
        out[right, left] = out[left, right].T
    return out


def dense_run(
    solver: CDFSG, views: Views, X0: Array, s1: float, s2: float, batch_size: int, order: int, dtype: type, steps: int
) -> tuple[Array, float]:
    """The last iterate (n, p) after so many steps of a pass on the minibatches that the engine draws, and seconds."""
    theta, xi = (views.batch_indices(batch_size, [order, stream]) for stream in (0, 1))
    first = next(views.batches(batch_size, [order, 2], dtype))
    began = time.perf_counter()
    dense, cross = (np.zeros((views.n_features, views.n_features), dtype) for _ in range(2))
    X = X0.astype(dtype)
    Y = X.T @ constraint_matrix(first, views.slices, dense) @ X
    D, B, V = (np.zeros_like(X) for _ in range(3))
    for k in range(steps):
        M = constraint_matrix(views.rows(theta[k], dtype), views.slices, dense)
        before = X.T @ (M @ X)
        X = X - s2 * (B / np.sqrt(V + solver.epsilon) if isinstance(solver, CDFSGAda) else D)
        MX = M @ X
        C = X.T @ MX
        Y = Y - s2 / s1 * (Y - before) + C - before
        Q = dissolving_factor(Y)
        G = -2 * (cross_covariance(views.rows(xi[k], dtype), views.slices, cross) @ (X @ Q))
        D = G @ Q.T + MX @ multiplier(X.T @ G, Y, solver.beta)
        if isinstance(solver, CDFSGAda):
            V = np.maximum(solver.eta2 * V + (1 - solver.eta2) * D**2, V)
            B = solver.eta1 * B + (1 - solver.eta1) * D
    return X, time.perf_counter() - began


def direct_form(name: str, views: Views, steps: int, dtype: type) -> tuple[Array, float]:
    """One lane of the direct form."""
    solver = SOLVERS[name]()
    X0 = initial_points(solver, views.n_features, P, (1,))[0]
    return dense_run(solver, views, X0, *SETTINGS[name], BATCH_SIZE, 1, dtype, steps)


def lane_steps(result: RunResult) -> int:
    """Steps of all lanes while they were alive."""
    return int(np.where(result.stopped_at < 0, result.steps, result.stopped_at).sum())


def agreement(solver: str, views: Views, steps: int) -> dict[str, float]:
    """How far the engine's iterate is from the direct form's after the same steps, relative to the largest entry."""
    part, found = common.beginning(views, steps, BATCH_SIZE), {}
    for name, dtype in DTYPES.items():
        X = common.run_lanes(solver, [SETTINGS[solver]], part, BATCH_SIZE, P, dtype=dtype).X[0]
        dense, _ = direct_form(solver, part, steps, dtype)
        found[name] = float(np.abs(X - dense).max() / np.abs(dense).max())
    return found


def measure(solver: str, dataset: str) -> list[dict[str, object]]:
    """Time both forms, one after the other in every repeat."""
    views, steps = views_of(dataset), DIRECT_STEPS[dataset]
    agrees = agreement(solver, views, steps)
    part = common.beginning(views, BLOCK_STEPS, BATCH_SIZE)
    times: dict[object, list[float]] = defaultdict(list)
    for _ in range(REPEATS):
        for name, dtype in DTYPES.items():
            times[name].append(direct_form(solver, views, steps, dtype)[1] / steps)
        alone = common.run_lanes(solver, [SETTINGS[solver]], views, BATCH_SIZE, P)
        if alone.stopped_at[0] >= 0:
            raise RuntimeError(f"{solver} diverged on {dataset} at {SETTINGS[solver]}; take shorter steps")
        times[1].append(alone.seconds / alone.steps)
        block = common.run_lanes(solver, [*GRID] * len(REPORTED_SEEDS), part, BATCH_SIZE, P)
        times[len(block.stopped_at)].append(block.seconds / lane_steps(block))
    rows, pass_steps = [], views.n_samples // BATCH_SIZE
    for dtype, count in product(DTYPES, (1, len(REPORTED_SEEDS) * len(GRID))):
        ratios = [slow / fast for slow, fast in zip(times[dtype], times[count], strict=True)]
        ratio, slow, fast = map(statistics.median, (ratios, times[dtype], times[count]))
        common.say(f"{dataset} {solver} {dtype}, {count} lanes: {ratio:.0f} times as fast")
        rows.append({
            "dataset": dataset, "solver": solver, "batch_size": BATCH_SIZE, "p": P, "dtype": dtype, "lanes": count,
            "ratio": ratio, "ratio_low": min(ratios), "ratio_high": max(ratios),
            "direct_step_seconds": slow, "engine_step_seconds": fast,
            "direct_pass_seconds": slow * pass_steps, "engine_pass_seconds": fast * pass_steps,
            "direct_steps": steps, "engine_steps": pass_steps if count == 1 else BLOCK_STEPS,
            "pass_steps": pass_steps, "extrapolated": "direct" if count == 1 else "both",
            "difference": agrees[dtype], "repeats": REPEATS,
        })  # fmt: skip
    return rows


def main() -> None:
    """Measure and write ``speed-direct.csv``."""
    common.publish("direct", lambda: [row for name in DATASETS for solver in COMPARED for row in measure(solver, name)])


if __name__ == "__main__":
    main()

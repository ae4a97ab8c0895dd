"""Problems on which rounding does not grow, so that the numbers of two computations can be held to each other."""

import numpy as np

from cdfsg.datasets import Provenance, Views

GOOD = {
    "CDFSG": {"s1": 0.5, "s2": 0.1},
    "CDFSG-Ada": {"s1": 0.5, "s2": 0.01},
    "Landing": {"eta": 0.3, "omega": 0.5},
    "RSG+": {"eta_q": 0.1, "eta_t": 0.01},
}
"""Settings of the paper's solvers that work on small data."""


def even_blocks(p, blocks, batch_size, seed=0, condition=3.0):
    """Two views of p columns in which every p rows of a minibatch in the file's order have this condition number.

    RSG+ inverts the products of such a block and Q, and a Q of p rows is orthogonal: they have the condition number of
    the block, wherever the run goes.  Two of three blocks are the same in both views up to a turn that they share.
    Each comes with its negative, in the second half, so that the mean is zero.
    """
    rng = np.random.default_rng(seed)
    turn, rows = _orthogonal(rng, p), []
    for k in range(blocks):
        left, own = ((_orthogonal(rng, p) * np.geomspace(1, 1 / condition, p)) @ _orthogonal(rng, p) for _ in range(2))
        rows.append(np.hstack([left, left @ turn if k % 3 else own]))
    batches = np.concatenate([*rows, *(-block for block in rows)]).reshape(-1, batch_size, 2 * p)
    data = batches.swapaxes(0, 1).reshape(-1, 2 * p)  # a minibatch has its rows at a stride through the file
    return Views("even blocks", data, (p, p), 1.0, True, Provenance("even_blocks", "none", "synthetic"))


def even_starts(p, seeds):
    """A start of condition number 1 in each of the two views, per seed: shape (len(seeds), 2 p, p)."""
    generators = [np.random.default_rng(seed) for seed in seeds]
    return np.stack([np.concatenate([_orthogonal(rng, p) for _ in range(2)]) for rng in generators])


def _orthogonal(rng, p):
    return np.linalg.qr(rng.standard_normal((p, p)))[0]

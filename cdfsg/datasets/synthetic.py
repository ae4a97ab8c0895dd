"""Multi-view data drawn from a model whose canonical correlations are known."""

from collections.abc import Sequence

import numpy as np

from cdfsg.checks import is_real, require_flag, require_not_negative, require_sizes, require_whole
from cdfsg.datasets.download import sha256
from cdfsg.datasets.views import Provenance, Views

# The canonical correlations of `load_synthetic`, exact for its sample; the others are 0.
CORRELATIONS = (0.9, 0.8, 0.6, 0.4)


def make_views(
    n_samples: int,
    sizes: Sequence[int],
    correlations: Sequence[float],
    seed: int,
    *,
    exact: bool = False,
    condition: float = 1.0,
    offset: float = 0.0,
) -> Views:
    r"""Draw views that share latent variables of known correlation.

    View ``v`` has the rows :math:`x_v = A_v z_v + b_v` with the latent variables

    .. math:: z_{v,i} = \sqrt{\rho_i}\, s_i + \sqrt{1 - \rho_i}\, e_{v,i},

    where all :math:`s_i` and :math:`e_{v,i}` are independent standard normal and :math:`\rho_i`, which
    is ``correlations[i]`` or 0 beyond its end, are the canonical correlations of every pair of views. The data are
    float64 of shape (N, sum(sizes)), their scale is 1, and they are centred.

    Parameters
    ----------
    n_samples, sizes : int, sequence of int
        Number of rows ``N``, at least 2, and of columns of each view.
    correlations : sequence of float
        Canonical correlations in [0, 1], in any order, at most ``min(sizes)`` of them.
    seed : int
        Of ``numpy.random.default_rng``.
    exact : bool, default False
        Make the *sample* canonical correlations of the centred data equal ``correlations``, up to
        rounding, which takes more rows than there are s and e. The mean is then ``b_v``.
    condition : float, default 1.0
        Condition number of every mixing matrix :math:`A_v`, whose singular values run
        geometrically from 1 to ``1 / condition``; that of a view's covariance is its square.
    offset : float, default 0.0
        Standard deviation from column to column of the constants :math:`b_v`.

    Examples
    --------
    >>> from cdfsg.metrics import canonical_correlations
    >>> views = make_views(1000, (4, 3), (0.9, 0.5), seed=1, exact=True)
    >>> views
    Views('synthetic', 1000 x 7 float64, views 4+3, scale 1, centred, synthetic)
    >>> canonical_correlations(views.covariance, views.sizes)[:2].round(6)
    array([0.9, 0.5])
    """
    require_whole("n_samples", n_samples, 2)
    require_whole("seed", seed, 0)
    require_not_negative(offset=offset)
    require_flag(exact=exact)
    require_sizes(sizes)
    rho = np.asarray(correlations)
    numbers = rho.ndim == 1 and (not rho.size or rho.dtype.kind in "iuf")
    if not numbers or len(rho) > min(sizes) or not ((rho >= 0) & (rho <= 1)).all():
        expected = f"at most {min(sizes)} numbers in [0, 1], one per column of the smallest view"
        raise ValueError(f"correlations={rho.tolist()}: expected {expected}")
    if exact and n_samples <= (needed := len(rho) + sum(sizes)):
        raise ValueError(f"n_samples={n_samples}: expected more than {needed} rows for an exact sample, or exact=False")
    if not (is_real(condition) and 1 <= condition < np.inf):
        raise ValueError(f"condition={condition!r}: expected a finite number of at least 1")
    sizes, rho = tuple(sizes), rho.astype(np.float64)
    rng = np.random.default_rng(seed)
    latent = rng.standard_normal((n_samples, len(rho) + sum(sizes)))
    if exact:  # centred, the covariance (over N) the identity
        latent = np.sqrt(n_samples) * np.linalg.qr(latent - latent.mean(axis=0))[0]
    shared, own = latent[:, : len(rho)], latent[:, len(rho) :]
    columns = []
    for view in np.split(own, np.cumsum(sizes)[:-1], axis=1):
        weights = np.pad(rho, (0, view.shape[1] - len(rho)))
        z = np.sqrt(1 - weights) * view
        z[:, : len(rho)] += np.sqrt(rho) * shared
        size = view.shape[1]
        left, right = (np.linalg.qr(rng.standard_normal((size, size)))[0] for _ in range(2))
        mixing = (left * np.geomspace(1, 1 / condition, size)) @ right
        columns.append(z @ mixing.T)
    data = np.hstack(columns) + offset * rng.standard_normal(sum(sizes))
    options = f"exact={exact}, condition={condition}, offset={offset}"
    source = f"make_views({n_samples}, {sizes}, {rho.tolist()}, {seed}, {options})"
    provenance = Provenance(source, sha256(data.tobytes()), "synthetic")
    return Views("synthetic", data, sizes, 1.0, centred=True, provenance=provenance)


def load_synthetic() -> Views:
    """Fixed data of `make_views`: 4,000 x (12 + 10), with exactly the canonical correlations `CORRELATIONS`."""
    return make_views(4000, (12, 10), CORRELATIONS, seed=0, exact=True, condition=5.0, offset=1.0)

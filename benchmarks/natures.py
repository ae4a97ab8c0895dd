"""Small data of many natures: what people do CCA on, and what has gone wrong for them.

Each function makes a `Draw` from a generator; bundled data come in a random sample of their rows.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import legendre
from scipy import sparse
from sklearn import datasets as bundled

from cdfsg.datasets import load, make_views

Rng = np.random.Generator


class Draw(NamedTuple):
    """Views, number of components, and the views without what was planted."""

    views: list[Any]
    p: int
    planted: tuple[int, ...] = ()

    @property
    def clean(self) -> list[Any]:
        return [np.delete(view, self.planted, axis=0) for view in self.views] if self.planted else self.views


KINDS: dict[str, Callable[[Rng], Draw]] = {}


def kind(make: Callable[[Rng], Draw]) -> Callable[[Rng], Draw]:
    KINDS[make.__name__.replace("_", " ")] = make
    return make


def pairs(rng: Rng, rows: int, *sizes: int, rho: tuple[float, ...] = (0.9, 0.7)) -> list[np.ndarray]:
    """White views that share a variable per correlation, spread over all columns by a rotation."""
    shared, views = rng.normal(size=(rows, len(rho))), []
    for size in sizes:
        Z = rng.normal(size=(rows, size))
        Z[:, : len(rho)] = np.sqrt(rho) * shared + np.sqrt(1 - np.array(rho)) * Z[:, : len(rho)]
        views.append(Z @ np.linalg.qr(rng.normal(size=(size, size)))[0])
    return views


def some(rng: Rng, *views: np.ndarray, share: float = 0.9) -> list[np.ndarray]:
    rows = rng.permutation(len(views[0]))[: int(share * len(views[0]))]
    return [view[rows] for view in views]


@kind
def near_copy(rng: Rng) -> Draw:
    a, h, w, e = rng.normal(size=(4, 4000))
    return Draw([np.c_[a, a + 0.03 * h], np.c_[h + 0.3 * e, 0.5 * a + w]], 1)


@kind
def age_and_birth_year(rng: Rng) -> Draw:
    age = rng.integers(18, 90, 3000)
    half, income = rng.integers(0, 2, 3000), rng.lognormal(10, 0.5, 3000) * (1 + age / 100)
    X = np.c_[age, 2020 - age - half, income]
    return Draw([X, np.c_[half + 0.3 * rng.normal(size=3000), income * rng.lognormal(0, 0.2, 3000), age]], 2)


@kind
def felt_temperature(rng: Rng) -> Draw:
    day = 10 + 10 * np.sin(np.arange(4000) * 2 * np.pi / 365) + 3 * rng.normal(size=4000)
    wind, wet = rng.gamma(2, 2, 4000), rng.uniform(0.3, 1, 4000)
    X = np.c_[day, day - 0.2 * wind + 0.1 * rng.normal(size=4000), day + 0.5 * wet]
    return Draw([X, np.c_[wind + rng.normal(size=4000), wet + 0.1 * rng.normal(size=4000), 0.1 * day + wind]], 2)


@kind
def spectra(rng: Rng) -> Draw:
    grid = np.linspace(0, 1, 100)
    peaks = np.exp(-((grid - np.linspace(0.05, 0.95, 12)[:, None]) ** 2) / 0.02)
    amounts = rng.normal(size=(3000, 12))
    X = amounts @ peaks + 0.002 * rng.normal(size=(3000, 100))
    return Draw([X, amounts[:, [3, 4]] + 0.3 * rng.normal(size=(3000, 2))], 2)


@kind
def monomials(rng: Rng) -> Draw:
    t = rng.uniform(size=3000)
    Y = np.c_[np.sin(12 * t), np.cos(25 * t)] + 0.5 * rng.normal(size=(3000, 2))
    return Draw([np.stack([t**k for k in range(1, 9)], axis=1), Y], 2)


@kind
def monomials_up_to_the_twelfth(rng: Rng) -> Draw:
    t = rng.uniform(size=3000)
    Y = np.stack([legendre.legval(2 * t - 1, [0] * k + [1]) for k in (11, 12)], axis=1)
    return Draw([np.stack([t**k for k in range(1, 13)], axis=1), Y + 0.4 * rng.normal(size=Y.shape)], 2)


@kind
def counts(rng: Rng) -> Draw:
    z, a, b = rng.normal(size=(4000, 1)), rng.normal(size=(4000, 5)), rng.normal(size=(4000, 4))
    draw = [rng.poisson(np.exp(1.5 * w - 2 + 0.5 * rng.normal(size=w.shape))) for w in (z, a, z, b)]
    return Draw([np.hstack(draw[:2]), np.hstack(draw[2:])], 1)


@kind
def lognormal_columns(rng: Rng) -> Draw:
    return Draw([np.exp(1.2 * view) for view in pairs(rng, 4000, 8, 6)], 2)


@kind
def heavy_tails(rng: Rng) -> Draw:
    left, right = pairs(rng, 4000, 6, 6)
    return Draw([left / np.sqrt(rng.chisquare(3, (4000, 6)) / 3), right / np.sqrt(rng.chisquare(3, (4000, 6)) / 3)], 2)


@kind
def rain(rng: Rng) -> Draw:
    fields = [np.maximum(view - 1, 0) ** 2 for view in pairs(rng, 5000, 12, 9, rho=(0.95, 0.9))]
    return Draw(fields, 2)


@kind
def one_rare_column(rng: Rng) -> Draw:
    rare = np.zeros(20_000)
    rare[rng.permutation(20_000)[:40]] = 1
    X = rng.normal(size=(20_000, 4))
    X[:, 0] += 5 * rare
    return Draw([X, rare[:, None]], 1)


@kind
def absurd_row(rng: Rng) -> Draw:
    views = pairs(rng, 6000, 10, 8)
    for view in views:
        view[3000] *= 1e6
    return Draw(views, 2, (3000,))


@kind
def absurd_row_in_float32(rng: Rng) -> Draw:
    views = [view.astype(np.float32) for view in pairs(rng, 6000, 10, 8)]
    for view in views:
        view[4321] *= 3e4
    return Draw(views, 2, (4321,))


@kind
def absurd_cell(rng: Rng) -> Draw:
    views = pairs(rng, 3000, 10, 8)
    views[1][100, 2] = 1e7
    return Draw(views, 2, (100,))


@kind
def breast_cancer(rng: Rng) -> Draw:
    X = bundled.load_breast_cancer().data
    return Draw(some(rng, X[:, :10], X[:, 20:]), 4)


@kind
def digits(rng: Rng) -> Draw:
    X = bundled.load_digits().data
    return Draw(some(rng, X[:, :32], X[:, 32:]), 5)


@kind
def digits_in_odd_units(rng: Rng) -> Draw:
    X = bundled.load_digits().data * 10 ** rng.uniform(-3, 3, 64)
    return Draw(some(rng, X[:, :32], X[:, 32:]), 5)


@kind
def linnerud(rng: Rng) -> Draw:
    both = bundled.load_linnerud()
    return Draw(some(rng, both.data, both.target, share=1), 2)


@kind
def diabetes(rng: Rng) -> Draw:
    both = bundled.load_diabetes(scaled=False)
    return Draw(some(rng, both.data[:, :4], np.c_[both.data[:, 4:], both.target]), 3)


@kind
def wine(rng: Rng) -> Draw:
    X = bundled.load_wine().data
    return Draw(some(rng, X[:, :6], X[:, 6:]), 3)


@kind
def iris(rng: Rng) -> Draw:
    X = bundled.load_iris().data
    return Draw(some(rng, X[:, :2], X[:, 2:]), 2)


@kind
def mnist(rng: Rng) -> Draw:
    views = load("mnist")
    rows = np.sort(rng.permutation(views.n_samples)[:4000])
    return Draw([np.asarray(views.data[rows])[:, view] for view in views.slices], 3)


@kind
def mediamill(rng: Rng) -> Draw:
    views = load("mediamill")
    rows = np.sort(rng.permutation(views.n_samples)[:10_000])
    return Draw([np.asarray(views.data[rows])[:, view] for view in views.slices], 5)


@kind
def photograph_patches(rng: Rng) -> Draw:
    photograph = bundled.load_sample_image("china.jpg").mean(axis=2)
    at = rng.integers(0, [photograph.shape[0] - 8, photograph.shape[1] - 16], size=(3000, 2))
    patches = np.array([photograph[i : i + 8, j : j + 16] for i, j in at])
    return Draw([patches[:, :, :8].reshape(3000, -1), patches[:, :, 8:].reshape(3000, -1)], 5)


@kind
def far_from_zero(rng: Rng) -> Draw:
    return Draw([view + 1e8 for view in pairs(rng, 3000, 10, 8)], 2)


@kind
def tiny_units(rng: Rng) -> Draw:
    return Draw([pairs(rng, 3000, 10, 8)[0] * 1e-9, pairs(rng, 3000, 10, 8)[1] * 1e9], 2)


@kind
def average_reference(rng: Rng) -> Draw:
    sources, views = rng.laplace(size=(4000, 20)), []
    for own in (sources[:, :14], sources[:, 8:]):
        scalp = own @ rng.normal(size=(own.shape[1], 24)) + 0.5 * rng.normal(size=(4000, 24))
        views.append(scalp - scalp.mean(axis=1, keepdims=True))
    return Draw(views, 4)


@kind
def all_dummies(rng: Rng) -> Draw:
    a = rng.integers(0, 12, 4000)
    b = np.where(rng.uniform(size=4000) < 0.4, a % 7, rng.integers(0, 7, 4000))
    return Draw([np.eye(12)[a], np.eye(7)[b]], 3)


@kind
def questionnaires(rng: Rng) -> Draw:
    return Draw([np.digitize(view, (-1.5, -0.5, 0.5, 1.5)) for view in pairs(rng, 1500, 20, 15)], 2)


@kind
def answers_of_yes_and_no(rng: Rng) -> Draw:
    return Draw([view > 1 for view in pairs(rng, 3000, 12, 12, rho=(0.98, 0.9))], 2)


@kind
def genotypes(rng: Rng) -> Draw:
    blocks = np.repeat(rng.normal(size=(2000, 20)), 5, axis=1)
    one, other = (blocks + 0.4 * rng.normal(size=(2000, 100)) > 0.8 for _ in range(2))
    X = one.astype(np.int8) + other
    return Draw([X, X[:, ::25] @ rng.normal(size=(4, 6)) + 3 * rng.normal(size=(2000, 6))], 3)


@kind
def parts_of_a_whole(rng: Rng) -> Draw:
    left, right = (np.exp(view) for view in pairs(rng, 3000, 8, 7))
    return Draw([left / left.sum(axis=1, keepdims=True), right / right.sum(axis=1, keepdims=True)], 2)


@kind
def lags_of_a_series(rng: Rng) -> Draw:
    noise, series = rng.normal(size=5100), np.zeros(5100)
    for t in range(2, 5100):
        series[t] = 1.9 * series[t - 1] - 0.95 * series[t - 2] + noise[t]
    lags = np.lib.stride_tricks.sliding_window_view(series, 24)
    return Draw([lags[:, :12], lags[:, 12:]], 2)


@kind
def random_walks(rng: Rng) -> Draw:
    walks = np.cumsum(rng.normal(size=(4000, 6)), axis=0)
    return Draw([walks[:, :4] + rng.normal(size=(4000, 4)), walks[:, 2:] + rng.normal(size=(4000, 4))], 2)


@kind
def drift(rng: Rng) -> Draw:
    left, right = pairs(rng, 5000, 8, 8)
    slope = np.linspace(-2, 2, 5000)[:, None]
    return Draw([left + slope, right * (1 + slope**2)], 2)


@kind
def curves(rng: Rng) -> Draw:
    t, phase = np.linspace(0, 1, 60), rng.uniform(0, 1, (2500, 1))
    X = np.sin(2 * np.pi * (t + phase)) + 0.3 * np.cumsum(rng.normal(size=(2500, 60)), axis=1) / 8
    return Draw([X, np.cos(4 * np.pi * (t[:40] + phase)) + 0.1 * rng.normal(size=(2500, 40))], 3)


@kind
def ill_conditioned(rng: Rng) -> Draw:
    drawn = make_views(4000, (40, 30), (0.9, 0.8, 0.6), seed=int(rng.integers(1000)), exact=True, condition=1000.0)
    return Draw([drawn.data[:, view] for view in drawn.slices], 3)


@kind
def mixed_units(rng: Rng) -> Draw:
    left, right = pairs(rng, 2500, 6, 5)
    return Draw([left * [1e6, 1, 1e-3, 50, 1e4, 1], right * [1, 1e-6, 1e3, 10, 2]], 2)


@kind
def independent_noise(rng: Rng) -> Draw:
    return Draw([rng.normal(size=(2000, 10)), rng.normal(size=(2000, 12))], 2)


@kind
def few_rows(rng: Rng) -> Draw:
    return Draw(pairs(rng, 30, 5, 4), 2)


@kind
def hardly_more_rows_than_columns(rng: Rng) -> Draw:
    return Draw(pairs(rng, 120, 40, 35), 3)


@kind
def fewer_rows_than_columns(rng: Rng) -> Draw:
    return Draw(pairs(rng, 60, 150, 4), 2)


@kind
def many_components(rng: Rng) -> Draw:
    return Draw(pairs(rng, 4000, 40, 30, rho=tuple(np.linspace(0.95, 0.5, 12))), 12)


@kind
def three_views(rng: Rng) -> Draw:
    return Draw(pairs(rng, 3000, 10, 8, 9), 2)


@kind
def five_views_of_one_variable(rng: Rng) -> Draw:
    shared = rng.normal(size=(3000, 1))
    more = [rng.normal(size=(3000, 4)) for _ in range(5)]
    return Draw([np.c_[sign * shared + Z[:, :1], Z[:, 1:]] for sign, Z in zip((1, -1, 1, -1, 1), more, strict=True)], 1)


@kind
def bags_of_words(rng: Rng) -> Draw:
    return Draw(topics(rng, 4000, 150, 120), 4)


def topics(rng: Rng, rows: int, *sizes: int) -> list[Any]:
    share = 60 * rng.dirichlet(np.full(6, 0.2), size=rows)
    words = [rng.dirichlet(np.full(n, 0.1), size=6) for n in sizes]
    return [sparse.csr_array(rng.poisson(share @ topic).astype(float)) for topic in words]


@kind
def wide_factors(rng: Rng) -> Draw:
    shared, views = rng.normal(size=(5000, 4)), []
    for n in (2200, 1900):
        views.append((0.2 * shared @ rng.normal(size=(4, n)) + rng.normal(size=(5000, n))).astype(np.float32))
    return Draw(views, 2)


@kind
def wide_text(rng: Rng) -> Draw:
    return Draw(topics(rng, 5000, 4100, 5), 3)


@kind
def wide_dummies_and_amounts(rng: Rng) -> Draw:
    a = rng.integers(0, 4200, 20_000)
    amounts = rng.normal(size=(4200, 3))[a] + rng.normal(size=(20_000, 3)) * [0.5, 1, 2]
    return Draw([sparse.csr_array((np.ones(20_000), a, np.arange(20_001)), shape=(20_000, 4200)), amounts], 2)


@kind
def wide_series(rng: Rng) -> Draw:
    X = np.cumsum(rng.normal(size=(5000, 4200)), axis=1).astype(np.float32)
    return Draw([X, (X[:, ::1400] + 10 * rng.normal(size=(5000, 3))).astype(np.float32)], 2)


@kind
def wide_in_odd_units(rng: Rng) -> Draw:
    shared = rng.normal(size=(5000, 2))
    X, Y = rng.normal(size=(5000, 4100)), rng.normal(size=(5000, 8))
    X[:, :2] += shared
    Y[:, :2] += shared
    return Draw([(X * 10 ** rng.uniform(-2, 2, 4100)).astype(np.float32), Y], 2)


@kind
def wider_than_long(rng: Rng) -> Draw:
    return Draw([rng.normal(size=(4100, 4500)).astype(np.float32), rng.normal(size=(4100, 3))], 2)

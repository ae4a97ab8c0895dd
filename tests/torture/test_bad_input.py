"""Input that no run can use is refused, case by case, with a text that names the argument and what is expected.

The texts are kept in ``bad_input.toml``, so that a change of one is seen.  After a change that is meant, write them
anew and read the difference::

    .venv/bin/python -m tests.torture.test_bad_input

At the end come the cases that look like errors and are none: they must give the right numbers.
"""

import contextlib
import io
import json
import os
import re
import tomllib
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from unittest import mock

import direct
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from cdfsg import __main__ as cli
from cdfsg import metrics
from cdfsg.datasets import Provenance, Views, data_dir, load, load_mediamill, load_nmnist, make_views
from cdfsg.files import ROOT, write_atomically
from cdfsg.linalg import inv_sqrt, truncated_inv_sqrt
from cdfsg.merits import Huber, Identity, make_merit
from cdfsg.paper.experiments import find
from cdfsg.paper.report import notebooks
from cdfsg.paper.results.reported import load_table, tolerance_of
from cdfsg.penalty import Penalty
from cdfsg.problems import GCCA, Linear, Quadratic, SampledGCCA
from cdfsg.solvers import SOLVERS
from cdfsg.solvers.cdfsg import CDFSG, CDFSGAda
from cdfsg.solvers.engine import initial_points, run
from cdfsg.solvers.rsg_plus import RSGPlus

pytestmark = pytest.mark.case("bad input: refused with the argument and the remedy")

SNAPSHOT = Path(__file__).with_name("bad_input.toml")
REMEDY = re.compile(
    r"expected|must|needs?\b|required|of the form|choose from|known\b|knows |should name|there are: |it has "
    r"|has the settings|is a method for|defined for|at most|set [A-Z_]+ to |use |take |give |make |drop |ask for "
    r"|pass |Call "
)
"""What is expected or to be done, in the words that the texts have for it."""


@dataclass(frozen=True)
class Case:
    """A call that must raise, and what its text must name: the argument, and its value where it has a short one."""

    call: Callable[[], object]
    names: tuple[str, ...]


def case(call, *names):
    return Case(call, names)


# --- small data ------------------------------------------------------------------------------------------

MADE = Provenance("made up", "sha256:0", "synthetic")
NUMBERS = np.arange(24.0).reshape(6, 4)
SETTINGS = {
    "CDFSG": {"s1": 0.5, "s2": 0.1},
    "CDFSG-Ada": {"s1": 0.5, "s2": 0.01},
    "Landing": {"eta": 0.3, "omega": 0.5},
    "RSG+": {"eta_q": 0.1, "eta_t": 0.01},
}
SMALL = SampledGCCA((4, 3), Identity())


def views(data=NUMBERS, sizes=(2, 2), scale=1.0, centred=True):
    return Views("mine", data, sizes, scale, centred, MADE)


def holding(value, row=3, column=1, rows=6):
    data = np.ones((rows, 4))
    data[row, column] = value
    return data


@cache
def small(sizes=(4, 3)):
    return make_views(60, sizes, (0.9, 0.5), seed=1, exact=True)


def go(name="CDFSG", data=None, p=2, lanes=1, batch_size=10, order=5, settings=None, X0=None, merit=None, **options):
    data = small() if data is None else data
    solver = SOLVERS[name]()
    X0 = initial_points(solver, data.n_features, p, range(lanes)) if X0 is None else X0
    values = {key: np.full(lanes, value) for key, value in SETTINGS[name].items()}
    problem = options.pop("problem", None) or SampledGCCA(data.sizes, merit or Identity())
    options.setdefault("dtype", np.float64)
    return run(solver, problem, data, X0, values | (settings or {}), batch_size, order, **options)


def loaded(load, variable, value):
    """A data set loaded under an environment variable."""
    with mock.patch.dict(os.environ, {variable: value}):
        return load()


def command(*arguments):
    """Raise what a command says on its error stream, as a user reads it."""
    err = io.StringIO()
    with contextlib.redirect_stderr(err), contextlib.redirect_stdout(io.StringIO()):
        try:
            status = cli.main(arguments)
        except SystemExit as stopped:
            status = stopped.code
    if status:
        # Whether the choices stand in quotes depends on Python's version.
        raise SystemExit(err.getvalue().strip().splitlines()[-1].replace("'", ""))


BAD = {
    # views
    "views: a single row": case(lambda: views(np.ones((1, 4))), "data", "(1, 4)"),
    "views: no row": case(lambda: views(np.ones((0, 4))), "data", "(0, 4)"),
    "views: one dimension": case(lambda: views(np.ones(4)), "data", "(4,)"),
    "views: three dimensions": case(lambda: views(np.ones((6, 2, 2))), "data", "(6, 2, 2)"),
    "views: no column": case(lambda: views(np.ones((6, 0)), ()), "sizes=()"),
    "views: a nested list": case(lambda: views(NUMBERS.tolist()), "data", "list"),
    "views: complex numbers": case(lambda: views(NUMBERS + 1j), "data", "complex128"),
    "views: objects": case(lambda: views(NUMBERS.astype(object)), "data", "object"),
    "views: strings": case(lambda: views(NUMBERS.astype(str)), "data", "<U"),
    "views: truth values": case(lambda: views(NUMBERS > 3), "data", "bool"),
    "views: dates": case(lambda: views(NUMBERS.astype("M8[s]")), "data", "datetime64"),
    "views: a masked array": case(lambda: views(np.ma.masked_less(NUMBERS, 3)), "data", "MaskedArray"),
    "views: a sparse matrix": case(lambda: views(sparse.csr_array(NUMBERS)), "data", "csr_array"),
    "views: NaN": case(lambda: views(holding(np.nan)), "data[3, 1]", "nan"),
    "views: infinity": case(lambda: views(holding(np.inf)), "data[3, 1]", "inf"),
    "views: minus infinity far down": case(lambda: views(holding(-np.inf, 2000, 2, 2100)), "data[2000, 2]", "-inf"),
    "views: sizes of another sum": case(lambda: views(sizes=(2, 3)), "sizes=(2, 3)", "4 columns"),
    "views: a view without a column": case(lambda: views(sizes=(4, 0)), "sizes=(4, 0)"),
    "views: a negative width": case(lambda: views(sizes=(5, -1)), "sizes=(5, -1)"),
    "views: half a column": case(lambda: views(sizes=(1.5, 2.5)), "sizes=(1.5, 2.5)"),
    "views: zero views": case(lambda: views(sizes=()), "sizes=()"),
    "views: sizes is a number": case(lambda: views(sizes=4), "sizes=4"),
    "views: sizes is a word": case(lambda: views(sizes="halves"), "sizes='halves'"),
    "views: sizes holds NaN": case(lambda: views(sizes=(np.nan, 2)), "sizes=(nan, 2)"),
    "views: a scale of zero": case(lambda: views(scale=0.0), "scale=0.0"),
    "views: a negative scale": case(lambda: views(scale=-1.0), "scale=-1.0"),
    "views: an infinite scale": case(lambda: views(scale=np.inf), "scale=inf"),
    "views: the scale is a word": case(lambda: views(scale="1"), "scale='1'"),
    "views: a provenance of no known kind": case(lambda: Provenance("x", "sha256:0", "real"), "kind='real'"),
    "views: a matrix of numpy's old kind": case(lambda: views(NUMBERS.view(np.matrix)), "data", "matrix"),
    "views: widths that are truth values": case(lambda: views(NUMBERS[:, :2], (True, True)), "sizes=(True, True)"),
    "views: a scale of True": case(lambda: views(scale=True), "scale=True"),
    "views: the centring is a word": case(lambda: views(centred="no"), "centred='no'"),
    "views: the centring of a copy is a word": case(lambda: views().with_centring("no"), "centred='no'"),
    "views: no provenance": case(lambda: Views("x", NUMBERS, (2, 2), 1.0, True, None), "provenance=None"),
    "rows: one beyond the end": case(lambda: views().rows([6]), "row 6", "0..5"),
    "rows: a negative one": case(lambda: views().rows([0, -1]), "row -1", "0..5"),
    "rows: numbers with a fraction": case(lambda: views().rows([0.0, 1.0]), "index", "float64"),
    "rows: a mask": case(lambda: views().rows(np.ones(6, dtype=bool)), "index", "bool"),
    "rows: two dimensions": case(lambda: views().rows([[0, 1]]), "index", "(1, 2)"),
    "rows: an integer type": case(lambda: views().rows([0], np.int64), "dtype=int64"),
    "rows: a type that is none": case(lambda: views().rows([0], "real"), "dtype", "real"),
    "batches: of no row": case(lambda: views().batches(0, 1), "batch_size=0"),
    "batches: of a negative number of rows": case(lambda: views().batches(-1, 1), "batch_size=-1"),
    "batches: of more rows than there are": case(lambda: views().batches(7, 1), "batch_size=7", "1..6"),
    "batches: of half a row": case(lambda: views().batches(2.5, 1), "batch_size=2.5"),
    "batches: of True rows": case(lambda: views().batches(True, 1), "batch_size=True"),
    "batches: the size is a word": case(lambda: views().batches("20", 1), "batch_size='20'"),
    "batches: a negative seed": case(lambda: views().batches(2, -1), "seed", "-1"),
    "batches: the seed is a word": case(lambda: views().batches(2, "abc"), "seed", "abc"),
    # made-up data
    "make_views: a single row": case(lambda: make_views(1, (2, 2), [], 0), "n_samples=1"),
    "make_views: half a row": case(lambda: make_views(2.5, (2, 2), [], 0), "n_samples=2.5"),
    "make_views: one view": case(lambda: make_views(9, (3,), [], 0), "sizes=(3,)"),
    "make_views: a view without a column": case(lambda: make_views(9, (0, 3), [], 0), "sizes=(0, 3)"),
    "make_views: half a column": case(lambda: make_views(9, (1.5, 3), [], 0), "sizes=(1.5, 3)"),
    "make_views: a correlation above 1": case(lambda: make_views(9, (2, 2), [1.5], 0), "correlations=[1.5]"),
    "make_views: a correlation of NaN": case(lambda: make_views(9, (2, 2), [np.nan], 0), "correlations=[nan]"),
    "make_views: more correlations than columns": case(
        lambda: make_views(9, (2, 2), [0.5] * 3, 0), "correlations=[0.5, 0.5, 0.5]"
    ),
    "make_views: too few rows for an exact sample": case(
        lambda: make_views(5, (2, 2), [0.5], 0, exact=True), "n_samples=5"
    ),
    "make_views: a condition number below 1": case(
        lambda: make_views(9, (2, 2), [], 0, condition=0.5), "condition=0.5"
    ),
    "make_views: a negative offset": case(lambda: make_views(9, (2, 2), [], 0, offset=-1.0), "offset=-1.0"),
    "make_views: a negative seed": case(lambda: make_views(9, (2, 2), [], -1), "seed=-1"),
    "make_views: one number of columns": case(lambda: make_views(9, 4, [], 0), "sizes=4"),
    "make_views: the correlation is a word": case(lambda: make_views(9, (2, 2), ["a"], 0), "correlations=['a']"),
    "make_views: a complex correlation": case(lambda: make_views(9, (2, 2), [0.5j], 0), "correlations=[0.5j]"),
    "make_views: no correlations": case(lambda: make_views(9, (2, 2), None, 0), "correlations=None"),
    "make_views: the condition number is a word": case(
        lambda: make_views(9, (2, 2), [], 0, condition="x"), "condition='x'"
    ),
    "make_views: the offset is a word": case(lambda: make_views(9, (2, 2), [], 0, offset="x"), "offset='x'"),
    "make_views: exactness is a word": case(lambda: make_views(9, (2, 2), [], 0, exact="no"), "exact='no'"),
    "data sets: an unknown name": case(lambda: load("mnsit"), "'mnsit'"),
    "data sets: the name is a list": case(lambda: load(["digits"]), "['digits']"),
    "data sets: Mediamill's folder is not there": case(
        lambda: loaded(load_mediamill, "CDFSG_MEDIAMILL", "/nonexistent"), "CDFSG_MEDIAMILL=/nonexistent"
    ),
    "data sets: n-MNIST's folder is not there": case(
        lambda: loaded(load_nmnist, "CDFSG_NMNIST_DIR", "/nonexistent"), "/nonexistent", "CDFSG_NMNIST_DIR"
    ),
    "data sets: Mediamill lies with a user that there is not": case(
        lambda: loaded(load_mediamill, "CDFSG_MEDIAMILL", "~nobody.here/x"), "CDFSG_MEDIAMILL=~nobody.here/x"
    ),
    "data sets: the data folder of a user that there is not": case(
        lambda: loaded(data_dir, "CDFSG_DATA_DIR", "~nobody.here/x"), "CDFSG_DATA_DIR=~nobody.here/x"
    ),
    # merits and problems
    "merit: an unknown name": case(lambda: make_merit("hubert", 0.1), "'hubert'"),
    "merit: the name is a list": case(lambda: make_merit(["huber"], 0.1), "['huber']"),
    "merit: a threshold of zero": case(lambda: Huber(0.0), "mu", "0.0"),
    "merit: a threshold of NaN": case(lambda: Huber(np.nan), "mu", "nan"),
    "merit: the threshold is a word": case(lambda: Huber("0.1"), "mu", "'0.1'"),
    "problem: zero views": case(lambda: SampledGCCA((), Identity()), "sizes", "()"),
    "problem: one view": case(lambda: SampledGCCA((4,), Identity()), "sizes", "(4,)"),
    "problem: a view without a column": case(lambda: SampledGCCA((4, 0), Identity()), "sizes", "(4, 0)"),
    "problem: half a column": case(lambda: SampledGCCA((1.5, 2.5), Identity()), "sizes", "(1.5, 2.5)"),
    "problem: sizes is a number": case(lambda: SampledGCCA(4, Identity()), "sizes", "4"),
    "problem: the merit is a word": case(lambda: SampledGCCA((2, 2), "identity"), "merit", "'identity'"),
    "problem: the merit is a class": case(lambda: SampledGCCA((2, 2), Identity), "merit", "Identity"),
    "problem: weights of another shape": case(lambda: SampledGCCA((2, 2), Identity(), np.eye(3)), "weights", "(3, 3)"),
    "problem: weights that are not symmetric": case(
        lambda: SampledGCCA((2, 2), Identity(), [[0, 1], [2, 0]]), "weights", "by 1"
    ),
    "problem: a weight of NaN": case(
        lambda: SampledGCCA((2, 2), Identity(), np.full((2, 2), np.nan)), "weights", "NaN"
    ),
    "problem: weights are words": case(lambda: SampledGCCA((2, 2), Identity(), [["a", "b"]] * 2), "weights", "<U1"),
    "problem: complex weights": case(lambda: SampledGCCA((2, 2), Identity(), np.eye(2) * 1j), "weights", "complex128"),
    "exact problem: a covariance that is not square": case(
        lambda: GCCA(np.ones((4, 3)), (2, 2), Identity()), "covariance", "(4, 3)"
    ),
    "exact problem: a covariance with NaN": case(
        lambda: GCCA(np.full((4, 4), np.nan), (2, 2), Identity()), "covariance", "NaN"
    ),
    "exact problem: a covariance that is not symmetric": case(
        lambda: GCCA(np.triu(np.ones((4, 4))), (2, 2), Identity()), "covariance", "by 1"
    ),
    "exact problem: a covariance of objects": case(
        lambda: GCCA(np.eye(4, dtype=object), (2, 2), Identity()), "covariance", "object"
    ),
    "exact problem: sizes of another sum": case(lambda: GCCA(np.eye(4), (2, 3), Identity()), "sizes", "(2, 3)"),
    "exact problem: one view": case(lambda: GCCA(np.eye(4), (4,), Identity()), "views", "(4,)"),
    "exact problem: a global Lipschitz constant with Huber's merit": case(
        lambda: GCCA(np.eye(4), (2, 2), Huber(0.1)).lipschitz, "huber merit"
    ),
    "exact problem: a covariance of integers": case(
        lambda: GCCA(np.eye(4, dtype=int), (2, 2), Identity()), "covariance", "int64"
    ),
    "exact problem: a negative variance": case(lambda: GCCA(-np.eye(4), (2, 2), Identity()), "covariance", "-1"),
    "exact problem: X of another height": case(
        lambda: GCCA(np.eye(4), (2, 2), Identity()).value(np.ones((9, 2))), "X must", "(9, 2)", "(4, p)"
    ),
    "exact problem: X of integers": case(
        lambda: GCCA(np.eye(4), (2, 2), Identity()).gradient(np.ones((4, 2), int)), "X must", "int64"
    ),
    "quadratic: X of another height": case(
        lambda: Quadratic(np.eye(3)).value(np.ones((2, 1))), "X must", "(2, 1)", "(3, p)"
    ),
    "quadratic: X is a vector": case(lambda: Quadratic(np.eye(3)).gradient(np.ones(3)), "X must", "(3,)"),
    "linear: X of another shape": case(
        lambda: Linear(np.ones((1, 1))).gradient(np.ones((3, 2))), "X must", "(1, 1)", "(3, 2)"
    ),
    "linear: complex numbers": case(lambda: Linear(np.ones((2, 1)) * 1j), "B must", "complex128"),
    "quadratic: a vector": case(lambda: Quadratic(np.ones(4)), "A must", "(4,)"),
    "quadratic: strings": case(lambda: Quadratic(np.full((2, 2), "a")), "A must", "<U1"),
    "quadratic: complex numbers": case(lambda: Quadratic(np.eye(2) * 1j), "A must", "complex128"),
    "penalty: M is not square": case(
        lambda: Penalty(Linear(np.ones((2, 1))), np.ones((2, 3)), 1.0), "M must", "(2, 3)"
    ),
    "penalty: beta of zero": case(lambda: Penalty(Linear(np.ones((2, 1))), np.eye(2), 0.0), "beta", "0.0"),
    "penalty: beta is a word": case(lambda: Penalty(Linear(np.ones((2, 1))), np.eye(2), "1"), "beta", "'1'"),
    "penalty: a problem that is a class": case(lambda: Penalty(Quadratic, np.eye(2), 1.0), "problem", "Quadratic"),
    "penalty: M holds words": case(
        lambda: Penalty(Quadratic(np.eye(2)), np.eye(2).astype(str), 1.0), "M must", "<U32"
    ),
    "penalty: complex M": case(lambda: Penalty(Quadratic(np.eye(2)), np.eye(2) * 1j, 1.0), "M must", "complex128"),
    "penalty: M has a negative diagonal": case(lambda: Penalty(Quadratic(np.eye(2)), -np.eye(2), 1.0), "M must", "-1"),
    "penalty: a small M that is not symmetric": case(
        lambda: Penalty(Quadratic(np.eye(2)), np.array([[1e-12, 1e-9], [0, 1e-12]]), 1.0), "M must", "1e-09"
    ),
    "penalty: beta of True": case(lambda: Penalty(Quadratic(np.eye(2)), np.eye(2), True), "beta", "True"),
    "penalty: X of another height": case(
        lambda: Penalty(Quadratic(np.eye(2)), np.eye(2), 1.0).value(np.ones((3, 1))), "X must", "(3, 1)", "(2, p)"
    ),
    "penalty: a threshold for no column": case(
        lambda: Penalty(Quadratic(np.eye(2)), np.eye(2), 1.0).threshold(0), "p must", "got 0"
    ),
    "penalty: a threshold with a singular M": case(
        lambda: Penalty(Quadratic(np.eye(2)), np.diag([0.0, 1.0]), 1.0).threshold(1), "positive definite M", "is 0"
    ),
    "metrics: correlations captured of three views": case(
        lambda: metrics.tcc(np.ones((3, 3, 1, 2, 2))), "two views", "got 3"
    ),
    "metrics: canonical correlations of one view": case(
        lambda: metrics.canonical_correlations(np.eye(4), (4,)), "two views", "got 1"
    ),
    "metrics: sizes of another sum": case(
        lambda: metrics.cross_moments(np.ones((1, 4, 2)), np.eye(4), (2, 3)), "sizes", "(2, 3)"
    ),
    "metrics: X of another height": case(
        lambda: metrics.cross_moments(np.ones((1, 3, 2)), np.eye(4), (2, 2)), "X ", "3", "4"
    ),
    "metrics: a minimiser of no column": case(lambda: metrics.minimiser(np.eye(4), (2, 2), 0), "p must", "got 0"),
    "metrics: a minimiser of more columns than features": case(
        lambda: metrics.minimiser(np.eye(4), (2, 2), 5), "p must", "1..4", "got 5"
    ),
    "metrics: eigenvalues of a covariance with NaN": case(
        lambda: metrics.generalised_eigenvalues(np.full((4, 4), np.nan), (2, 2)), "covariance", "NaN"
    ),
    "metrics: a single X": case(
        lambda: metrics.cross_moments(np.ones((4, 2)), np.eye(4), (2, 2)), "X must", "(4, 2)", "(lanes, 4, p)"
    ),
    "metrics: complex X": case(
        lambda: metrics.cross_moments(np.ones((1, 4, 2)) * 1j, np.eye(4), (2, 2)), "X must", "complex128"
    ),
    "metrics: a covariance that is not square": case(
        lambda: metrics.canonical_correlations(np.ones((4, 3)), (2, 2)), "covariance", "(4, 3)"
    ),
    "metrics: a covariance of integers": case(
        lambda: metrics.canonical_correlations(np.eye(4, dtype=int), (2, 2)), "covariance", "int64"
    ),
    "metrics: a complex covariance": case(
        lambda: metrics.canonical_correlations(np.eye(4) * 1j, (2, 2)), "covariance", "complex128"
    ),
    "metrics: a covariance that is a list": case(
        lambda: metrics.canonical_correlations([[1.0, 0.0], [0.0, 1.0]], (1, 1)), "covariance", "list"
    ),
    "metrics: a covariance that is not symmetric": case(
        lambda: metrics.canonical_correlations(np.triu(np.ones((4, 4))), (2, 2)), "covariance", "by 1"
    ),
    "metrics: a negative variance": case(
        lambda: metrics.canonical_correlations(-np.eye(4), (2, 2)), "covariance", "-1"
    ),
    "metrics: a covariance with correlations above 1": case(
        lambda: metrics.canonical_correlations(np.array([[1.0, 5.0], [5.0, 1.0]]), (1, 1)), "covariance", "of 5"
    ),
    "metrics: sizes is a number": case(lambda: metrics.canonical_correlations(np.eye(4), 4), "sizes", "got 4"),
    "metrics: a truncation above 1": case(
        lambda: metrics.canonical_correlations(np.eye(4), (2, 2), rtol=2.0), "rtol", "2.0"
    ),
    "metrics: a truncation of NaN": case(
        lambda: metrics.canonical_correlations(np.eye(4), (2, 2), rtol=np.nan), "rtol", "nan"
    ),
    "metrics: a negative ridge": case(lambda: metrics.ridged(np.eye(4), (2, 2), -5.0), "ridge", "-5.0"),
    "metrics: half a column of a minimiser": case(
        lambda: metrics.minimiser(np.eye(4), (2, 2), 1.5), "p must", "got 1.5"
    ),
    "metrics: a bound for more columns than eigenvalues": case(
        lambda: metrics.objective_bound(np.ones(3), 9, 2, Identity()), "p must", "1..3", "got 9"
    ),
    "metrics: a bound for one view": case(
        lambda: metrics.objective_bound(np.ones(3), 1, 1, Huber(0.1)), "m must", "got 1"
    ),
    "metrics: moments of another shape": case(lambda: metrics.tcc(np.eye(2)), "K must", "(2, 2)"),
    "metrics: a factor of another shape": case(
        lambda: metrics.congruence(np.ones((2, 2, 1, 2, 2)), np.eye(3)), "N must", "(1, 2, 2)", "(3, 3)"
    ),
    "metrics: the merit is a word": case(
        lambda: metrics.objective(np.ones((2, 2, 1, 2, 2)), "identity"), "merit", "'identity'"
    ),
    "metrics: a single matrix to orthogonalise": case(
        lambda: metrics.orthogonalise(np.eye(2)), "C must", "(2, 2)", "(lanes, p, p)"
    ),
    "linalg: an inverse root of a vector": case(lambda: inv_sqrt(np.ones(3)), "a must", "(3,)"),
    "linalg: an inverse root of words": case(lambda: inv_sqrt(np.eye(2).astype(str)), "a must", "<U32"),
    "linalg: a truncated inverse root with NaN": case(
        lambda: truncated_inv_sqrt(np.full((2, 2), np.nan), 1e-10), "a must", "NaN"
    ),
    "linalg: an inverse root of a singular matrix": case(lambda: inv_sqrt(np.diag([0.0, 1.0])), "eigenvalue is 0"),
    "linalg: an inverse root with NaN": case(lambda: inv_sqrt(np.full((2, 2), np.nan)), "inv_sqrt", "NaN"),
    # solvers
    "solver: X0 with two dimensions": case(lambda: go(X0=np.ones((7, 2))), "X0", "(7, 2)"),
    "solver: X0 of integers": case(lambda: go(X0=np.ones((1, 7, 2), dtype=int)), "X0", "int64"),
    "solver: X0 with NaN": case(lambda: go(X0=np.full((1, 7, 2), np.nan)), "X0", "finite", "(1, 7, 2)"),
    "solver: complex X0": case(lambda: go(X0=np.ones((1, 7, 2)) * 1j), "X0", "complex128"),
    "solver: X0 of objects": case(lambda: go(X0=np.ones((1, 7, 2), dtype=object)), "X0", "object"),
    "solver: X0 without a lane": case(lambda: go(X0=np.ones((0, 7, 2)), lanes=0), "X0", "(0, 7, 2)"),
    "solver: X0 of another height": case(lambda: go(X0=np.ones((1, 5, 2))), "X0", "5 rows", "7"),
    "solver: more columns than rows": case(lambda: go(X0=np.ones((1, 7, 8))), "p = 8", "7"),
    "solver: a negative step": case(lambda: go(settings={"s2": [-0.1]}), "s2", "-0.1"),
    "solver: a step of zero": case(lambda: go(settings={"s2": [0.0]}), "s2", "[0.]"),
    "solver: a step of NaN": case(lambda: go(settings={"s1": [np.nan]}), "s1", "nan"),
    "solver: an infinite step": case(lambda: go("Landing", settings={"eta": [np.inf]}), "eta", "inf"),
    "solver: the step is a word": case(lambda: go(settings={"s2": ["fast"]}), "s2", "fast"),
    "solver: the step is complex": case(lambda: go(settings={"s2": [0.1j]}), "s2", "0.1j"),
    "solver: steps for more lanes than there are": case(
        lambda: go(settings={"s2": [0.1, 0.1]}), "s2", "1 positive", "[0.1 0.1]"
    ),
    "solver: one number for the step": case(lambda: go(settings={"s2": 0.1}), "s2", "got 0.1"),
    "solver: a setting that it does not have": case(lambda: go(settings={"eta": [0.1]}), "eta", "CDFSG"),
    "solver: a setting is missing": case(
        lambda: run(CDFSG(), SMALL, small(), np.ones((1, 7, 2)), {"s1": [0.5]}, 10, 5), "got ['s1']", "'s2'"
    ),
    "solver: a batch of no row": case(lambda: go(batch_size=0), "batch_size=0"),
    "solver: a batch of more rows than there are": case(lambda: go(batch_size=61), "batch_size=61", "1..60"),
    "solver: a batch of half a row": case(lambda: go(batch_size=2.5), "batch_size=2.5"),
    "solver: the batch size is a word": case(lambda: go(batch_size="ten"), "batch_size='ten'"),
    "solver: a negative order": case(lambda: go(order=-1), "order", "-1"),
    "solver: an order with a fraction": case(lambda: go(order=1.5), "order", "1.5"),
    "solver: no order for two streams": case(lambda: go(order=None), "order", "CDFSG"),
    "solver: an integer type": case(lambda: go(dtype=np.int64), "dtype", "int64"),
    "solver: a problem of other views": case(
        lambda: go(problem=SampledGCCA((3, 4), Identity())), "sizes", "(3, 4)", "(4, 3)"
    ),
    "solver: a table in place of views": case(
        lambda: run(CDFSG(), SMALL, np.ones((60, 7)), np.ones((7, 1, 1)), {"s1": [1], "s2": [1]}, 2, 1),
        "views", "ndarray",
    ),
    "solver: masked values in X0": case(
        lambda: go(X0=np.ma.masked_less(np.arange(14.0).reshape(1, 7, 2), 3)), "X0", "masked"
    ),
    "solver: an exact problem": case(lambda: go(problem=GCCA(np.eye(7), (4, 3), Identity())), "problem", "GCCA"),
    "solver: settings that are no mapping": case(
        lambda: run(CDFSG(), SMALL, small(), np.ones((1, 7, 2)), 3, 10, 5), "settings", "per lane", "got 3"
    ),
    "solver: sharing is a word": case(lambda: go(shared="no"), "shared", "'no'"),
    "solver: no type": case(lambda: go(dtype=None), "dtype"),
    "solver: an order of True": case(lambda: go(order=True), "order", "True"),
    "solver: its name in place of it": case(
        lambda: run("CDFSG", SMALL, small(), np.ones((1, 7, 2)), {}, 2, 1), "solver", "'CDFSG'"
    ),
    "start: no column": case(lambda: initial_points(CDFSG(), 7, 0, [1]), "p must", "got 0"),
    "start: more columns than rows": case(lambda: initial_points(CDFSG(), 7, 8, [1]), "p must", "1..7", "got 8"),
    "start: half a column": case(lambda: initial_points(CDFSG(), 7, 1.5, [1]), "p must", "got 1.5"),
    "start: a column of True": case(lambda: initial_points(CDFSG(), 7, True, [1]), "p must", "True"),
    "start: half a row": case(lambda: initial_points(CDFSG(), 7.5, 2, [1]), "n must", "7.5"),
    "start: one seed": case(lambda: initial_points(CDFSG(), 7, 2, 5), "seeds", "[5]"),
    "start: a seed of True": case(lambda: initial_points(CDFSG(), 7, 2, [True]), "seeds", "True"),
    "start: no solver": case(lambda: initial_points(None, 7, 2, [1]), "solver", "None"),
    "start: no seed": case(lambda: initial_points(CDFSG(), 7, 2, []), "seeds is empty"),
    "start: a negative seed": case(lambda: initial_points(CDFSG(), 7, 2, [-1]), "seed", "-1"),
    "CDFSG: beta of zero": case(lambda: CDFSG(beta=0.0), "beta", "0.0"),
    "CDFSG: beta of True": case(lambda: CDFSG(beta=True), "beta", "True"),
    "CDFSG: a negative beta": case(lambda: CDFSG(beta=-0.1), "beta", "-0.1"),
    "CDFSG: beta is a word": case(lambda: CDFSG(beta="0.1"), "beta", "'0.1'"),
    "CDFSG-Ada: a decay of 1": case(lambda: CDFSGAda(eta1=1.0), "eta1", "1.0"),
    "CDFSG-Ada: a negative decay": case(lambda: CDFSGAda(eta2=-0.1), "eta2", "-0.1"),
    "CDFSG-Ada: the decay is a word": case(lambda: CDFSGAda(eta1="0.9"), "eta1", "'0.9'"),
    "CDFSG-Ada: epsilon of zero": case(lambda: CDFSGAda(epsilon=0.0), "epsilon", "0.0"),
    "RSG+: a negative weight": case(lambda: RSGPlus(weight=-0.1), "weight", "-0.1"),
    "RSG+: three views": case(lambda: go("RSG+", small((3, 3, 3))), "two views", "has 3"),
    "RSG+: Huber's merit": case(lambda: go("RSG+", merit=Huber(0.1)), "identity merit"),
    "RSG+: data that are not centred": case(lambda: go("RSG+", small().with_centring(False)), "centred", "synthetic"),
    "RSG+: p that does not divide the batch": case(lambda: go("RSG+", p=3), "p must", "10 % 3 = 1"),
    "RSG+: more columns than the narrower view": case(lambda: go("RSG+", p=5), "p = 5", "p <= 3"),
    # commands
    "command: none": case(lambda: command(), "command"),
    "command: an unknown one": case(lambda: command("rnu"), "command", "rnu"),
    "command: zero processes": case(lambda: command("run", "--jobs", "0"), "--jobs", "got 0"),
    "command: minus one process": case(lambda: command("quick", "--jobs", "-1"), "--jobs", "got -1"),
    "command: half a process": case(lambda: command("theory", "--jobs", "1.5"), "--jobs", "got 1.5"),
    "command: a filter without a value": case(lambda: command("status", "--only", "mnist"), "--only mnist"),
    "command: a filter by what no table has": case(lambda: command("status", "--only", "data=mnist"), "--only", "data"),
    "command: a filter that keeps nothing": case(
        lambda: command("status", "--only", "dataset=cifar"), "--only dataset=cifar"
    ),
    "command: a filter that names a key twice": case(
        lambda: command("status", "--only", "merit=huber,merit=identity"), "--only merit=huber,merit=identity"
    ),
    "command: a cluster's address that is none": case(
        lambda: command("quick", "--dask", "nowhere"), "Dask scheduler at nowhere"
    ),
    # notebooks
    "notebook: an unknown parameter": case(
        lambda: notebooks.execute("40_gcca", {"datset": "mnist"}, Path("x.ipynb")), "datset", "40_gcca"
    ),
    "notebook: parameters for one that has none": case(
        lambda: notebooks.execute("00_start", {"dataset": "mnist"}, Path("x.ipynb")), "dataset", "00_start"
    ),
    "notebook: parameters without an output": case(
        lambda: notebooks.execute("40_gcca", {"dataset": "mnist"}), "dataset", "output"
    ),
    "notebook: an unknown one": case(lambda: notebooks.execute("99_none"), "'99_none'"),
    "notebook: a data set without a table": case(lambda: find("digits", "identity", "full"), "dataset='digits'"),
    "notebook: a merit without a table": case(lambda: find("mnist", "square", "full"), "merit='square'"),
    "notebook: an unknown profile": case(lambda: find("mnist", "identity", "fast"), "profile 'fast'"),
    "paper: an unknown table": case(lambda: load_table("ta:none"), "table 'ta:none'"),
    "paper: an unknown quantity": case(lambda: tolerance_of("speed"), "quantity 'speed'"),
}


# --- parts that may not be there -------------------------------------------------------------------------

try:
    from cdfsg import StochasticGCCA
except ImportError:
    StochasticGCCA = None
try:
    from cdfsg import eigenproblems
except ImportError:
    eigenproblems = None

LEFT, RIGHT = NUMBERS[:, :2], NUMBERS[:, 2:]


def fit(views=None, **parameters):
    some = [small().data[:, part] for part in small().slices] if views is None else views
    return StochasticGCCA(**{"random_state": 0, "n_epochs": 1} | parameters).fit(some)


def noise(columns):
    return np.random.default_rng(columns).normal(size=(60, columns))


def frame(*names):
    return pd.DataFrame(np.random.default_rng(0).normal(size=(60, len(names))), columns=list(names))


ESTIMATOR = {
    "estimator: zero views": case(lambda: fit([]), "views", "0 views"),
    "estimator: one view": case(lambda: fit([LEFT]), "views", "1 view"),
    "estimator: a dict of views": case(lambda: fit({"a": LEFT, "b": RIGHT}), "views", "dict"),
    "estimator: a path in place of a view": case(lambda: fit(["left.npy", RIGHT]), "view 0", "'left.npy'"),
    "estimator: a view of three dimensions": case(
        lambda: fit([NUMBERS.reshape(6, 2, 2), RIGHT]), "view 0", "(6, 2, 2)"
    ),
    "estimator: rows of unequal lengths": case(lambda: fit([[[1, 2], [3]] * 3, RIGHT]), "view 0", "unequal lengths"),
    "estimator: a column of dates": case(
        lambda: fit([frame("a").assign(day=pd.Timestamp(0)), frame("c")]), "view 0", "'day'", "datetime64"
    ),
    "estimator: a column of strings": case(
        lambda: fit([frame("a").astype(str), frame("c")]), "view 0", "'a'", "str"
    ),
    "estimator: two columns of one name": case(lambda: fit([frame("a", "a"), frame("c")]), "view 0", "'a'"),
    "estimator: the rows of a frame in another order": case(
        lambda: fit([frame("a"), frame("c")[::-1]]), "view 1", "another order"
    ),
    "estimator: numbers beyond double precision": case(
        lambda: fit([np.full((6, 2), 10**400, dtype=object), RIGHT]), "view 0"
    ),
    "estimator: a sparse view with an index beyond its end": case(
        lambda: fit([sparse.csr_array((np.ones(6), np.full(6, 9), np.arange(7)), shape=(6, 2)), RIGHT]), "view 0", "< 2"
    ),
    "estimator: numbers whose squares are too large": case(
        lambda: fit([noise(2) * 1e200, noise(2)]), "view 0", "e+200", "float64"
    ),
    "estimator: numbers whose squares are too small": case(
        lambda: fit([noise(2), noise(2) * 1e-200]), "view 1", "e-200", "float64"
    ),
    "estimator: fewer directions than components": case(
        lambda: fit([noise(4)[:, [0, 1, 0]], noise(2)[:, [1, 0, 0]]], n_components=3), "n_components=3", "at most 2"
    ),
    "estimator: a function that returns no iterator": case(lambda: fit(lambda: None), "views", "NoneType"),
    "estimator: the centring is a word": case(lambda: fit(center="no"), "center='no'"),
    "estimator: the scaling is no truth value": case(lambda: fit(scale=None), "scale=None"),
    "estimator: the shuffling is a word": case(lambda: fit(shuffle="no"), "shuffle='no'"),
    "estimator: a step of True": case(lambda: fit(step_size=True), "step_size", "True"),
    "estimator: a tolerance of True": case(lambda: fit(tol=True), "tol=True"),
    "estimator: the seed is a word": case(lambda: fit(random_state="x"), "random_state='x'"),
    "estimator: a negative seed": case(lambda: fit(random_state=-1), "random_state=-1"),
    "estimator: one of the callbacks is none": case(lambda: fit(callbacks=[None]), "callbacks=[None]"),
    "estimator: a number of widths beside a list": case(lambda: fit(view_sizes=7), "view_sizes=7"),
    "estimator: an unknown word beside a list": case(lambda: fit(view_sizes="thirds"), "view_sizes='thirds'"),
    "estimator: a table of a list of views": case(
        lambda: fit().set_output(transform="pandas").transform([noise(4), noise(3)]), "set_output", "view_sizes"
    ),
    "estimator: a score of numbers whose squares are too large": case(
        lambda: fit().score([noise(4) * 1e300, noise(3)]), "views", "overflow"
    ),
    "estimator: a calibration on rows that are all alike": case(
        lambda: fit(n_components=2).calibrate([np.ones((9, 4)), np.ones((9, 3))]), "n_components=2", "at most 1"
    ),
    "estimator: one array without widths": case(lambda: fit(NUMBERS), "views", "view_sizes"),
    "estimator: a single row": case(lambda: fit([LEFT[:1], RIGHT[:1]]), "view 0", "minimum of 2"),
    "estimator: no row": case(lambda: fit([LEFT[:0], RIGHT[:0]]), "view 0", "0 sample"),
    "estimator: a view of one dimension": case(lambda: fit([LEFT, RIGHT[:, 0]]), "view"),
    "estimator: a view of no column": case(lambda: fit([LEFT[:, :0], RIGHT]), "view 0", "0 feature"),
    "estimator: unequal row counts": case(lambda: fit([LEFT, RIGHT[:5]]), "views", "6, 5 rows"),
    "estimator: NaN": case(lambda: fit([LEFT, holding(np.nan)[:, :2]], n_components=1), "view 1", "NaN"),
    "estimator: infinity": case(lambda: fit([holding(np.inf)[:, :2], RIGHT]), "view 0", "infinity"),
    "estimator: complex numbers": case(lambda: fit([LEFT * 1j, RIGHT]), "view 0", "omplex"),
    "estimator: objects that are no numbers": case(
        lambda: fit([np.array([["a", None]] * 6, dtype=object), RIGHT]), "view 0"
    ),
    "estimator: strings": case(lambda: fit([np.full((6, 2), "a"), RIGHT]), "view 0", "strings"),
    "estimator: masked values": case(lambda: fit([np.ma.masked_less(LEFT, 3), RIGHT]), "view 0", "masked"),
    "estimator: all views constant": case(lambda: fit([np.ones((60, 2)), np.ones((60, 2))]), "view 0", "constant"),
    "estimator: one view constant": case(lambda: fit([np.random.default_rng(0).normal(size=(60, 2)), np.ones((60, 2))]),
                                         "view 1", "constant"),  # fmt: skip
    "estimator: an iterator that gives nothing": case(lambda: fit(iter([])), "iterator"),
    "estimator: more components than columns": case(lambda: fit(n_components=4), "n_components=4"),
    "estimator: no component": case(lambda: fit(n_components=0), "n_components=0"),
    "estimator: half a component": case(lambda: fit(n_components=1.5), "n_components=1.5"),
    "estimator: no pass": case(lambda: fit(n_epochs=0), "n_epochs=0"),
    "estimator: a batch of one row": case(lambda: fit(batch_size=1), "batch_size=1"),
    "estimator: a batch of more rows than there are": case(lambda: fit(batch_size=61), "batch_size=61", "60"),
    "estimator: the batch size is a word": case(lambda: fit(batch_size="all"), "batch_size='all'"),
    "estimator: an unknown merit": case(lambda: fit(merit="square"), "merit='square'"),
    "estimator: an unknown algorithm": case(lambda: fit(algorithm="adam"), "algorithm='adam'"),
    "estimator: the algorithm is a list": case(lambda: fit(algorithm=["cdfsg"]), "algorithm=['cdfsg']"),
    "estimator: a threshold of zero": case(lambda: fit(merit="huber", mu=0.0), "mu", "0.0"),
    "estimator: a negative penalty": case(lambda: fit(penalty=-1.0), "penalty", "-1.0"),
    "estimator: a step of zero": case(lambda: fit(step_size=0.0), "step_size", "0.0"),
    "estimator: a negative step": case(lambda: fit(step_size=-1.0), "step_size", "-1.0"),
    "estimator: an infinite step": case(lambda: fit(step_size=np.inf), "step_size", "inf"),
    "estimator: a tracker's step above 1": case(lambda: fit(tracking=1.5), "tracking=1.5"),
    "estimator: a tracker's step of zero": case(lambda: fit(tracking=0.0), "tracking", "0.0"),
    "estimator: a negative tolerance": case(lambda: fit(tol=-1.0), "tol=-1.0"),
    "estimator: a callback that cannot be called": case(lambda: fit(callbacks=3), "callbacks=3"),
    "estimator: widths of another sum": case(
        lambda: fit(NUMBERS, view_sizes=(2, 3)), "view_sizes=(2, 3)", "4 features"
    ),
    "estimator: widths with a zero": case(lambda: fit(NUMBERS, view_sizes=(4, 0)), "view_sizes=(4, 0)"),
    "estimator: one width": case(lambda: fit(NUMBERS, view_sizes=(4,)), "view_sizes=(4,)"),
    "estimator: widths that are a number": case(lambda: fit(NUMBERS, view_sizes=4), "view_sizes=4"),
    "estimator: widths that are an unknown word": case(
        lambda: fit(NUMBERS, view_sizes="thirds"), "view_sizes='thirds'"
    ),
    "estimator: one column in two halves": case(
        lambda: fit(NUMBERS[:, :1], view_sizes="halves"), "view_sizes='halves'"
    ),
    "estimator: widths beside a list of other widths": case(
        lambda: fit([LEFT, RIGHT], view_sizes=(1, 3)), "view_sizes=(1, 3)", "(2, 2)"
    ),
    "estimator: a transform of another number of views": case(
        lambda: fit().transform([LEFT, RIGHT, LEFT]), "3 views", "fitted with 2"
    ),
    "estimator: a transform of other widths": case(lambda: fit().transform([LEFT, RIGHT]), "view 0", "fitted with 4"),
    "estimator: a transform of other column names": case(
        lambda: fit([frame("a", "b"), frame("c")]).transform([frame("b", "a"), frame("c")]), "names of the columns"
    ),
    "estimator: a transform before a fit": case(lambda: StochasticGCCA().transform([LEFT, RIGHT]), "not fitted"),
    "estimator: a first call of partial_fit with too few rows": case(
        lambda: StochasticGCCA(n_components=2).partial_fit([LEFT[:2], RIGHT[:2]]), "2 rows", "n_components = 2"
    ),
}
"""Cases of `cdfsg.StochasticGCCA`; collected where there is one."""

EIGENPROBLEMS = {
    "eigenproblem: no row of X": case(lambda: eigenproblems.SampledGEVP(0), "d ", "0"),
    "eigenproblem: half a row of X": case(lambda: eigenproblems.SampledGEVP(1.5), "d ", "1.5"),
    "eigenproblem: two shapes": case(
        lambda: eigenproblems.generalised_eigenproblem(LEFT, RIGHT[:5]), "b of shape (5, 2)", "(6, 2)"
    ),
    "eigenproblem: one dimension": case(
        lambda: eigenproblems.generalised_eigenproblem(np.ones(4), np.ones(4)), "a of shape (4,)"
    ),
    "eigenproblem: NaN": case(
        lambda: eigenproblems.generalised_eigenproblem(NUMBERS, holding(np.nan)), "b[3, 1]", "nan"
    ),
    "eigenproblem: complex numbers": case(
        lambda: eigenproblems.generalised_eigenproblem(NUMBERS * 1j, NUMBERS), "a of shape (6, 4)", "complex128"
    ),
    "eigenproblem: strings": case(
        lambda: eigenproblems.generalised_eigenproblem(NUMBERS, NUMBERS.astype(str)), "b of shape (6, 4)", "<U"
    ),
    "eigenproblem: rows of unequal lengths": case(
        lambda: eigenproblems.generalised_eigenproblem([[1, 2], [3]], [[1, 2], [3]]), "a has", "unequal lengths"
    ),
    "eigenproblem: masked values": case(
        lambda: eigenproblems.generalised_eigenproblem(NUMBERS, np.ma.masked_less(NUMBERS, 3)), "b has", "masked"
    ),
    "eigenproblem: a sparse matrix": case(
        lambda: eigenproblems.generalised_eigenproblem(sparse.csr_array(NUMBERS), NUMBERS), "a is sparse"
    ),
    "eigenproblem: the centring is a word": case(
        lambda: eigenproblems.generalised_eigenproblem(NUMBERS, NUMBERS, centred="no"), "centred='no'"
    ),
    "discriminant analysis: labels without an order": case(
        lambda: eigenproblems.discriminant_analysis(NUMBERS, np.array([1, "a"] * 3, dtype=object)), "y has", "int, str"
    ),
    "discriminant analysis: masked labels": case(
        lambda: eigenproblems.discriminant_analysis(NUMBERS, np.ma.masked_equal([0, 1] * 3, 1)), "y has", "masked"
    ),
    "discriminant analysis: frequencies that are words": case(
        lambda: eigenproblems.SampledLDA(3, ["a", "b"]), "priors", "['a', 'b']"
    ),
    "discriminant analysis: the number of rows is a word": case(
        lambda: eigenproblems.SampledLDA(3, [0.5, 0.5], "x"), "n_samples", "'x'"
    ),
    "discriminant analysis: a label too few": case(
        lambda: eigenproblems.discriminant_analysis(NUMBERS, [0, 0, 0, 1, 1]), "y of shape (5,)", "(6,)"
    ),
    "discriminant analysis: one class": case(
        lambda: eigenproblems.discriminant_analysis(NUMBERS, np.zeros(6)), "y has 1 class"
    ),
    "discriminant analysis: a class of one sample": case(
        lambda: eigenproblems.discriminant_analysis(NUMBERS, [0, 0, 0, 0, 0, 1]), "class 1", "single sample"
    ),
    "discriminant analysis: a missing label": case(
        lambda: eigenproblems.discriminant_analysis(NUMBERS, [0, 0, 0, 1, 1, np.nan]), "y[5]", "nan"
    ),
    "discriminant analysis: infinity": case(
        lambda: eigenproblems.discriminant_analysis(holding(np.inf), [0, 0, 0, 1, 1, 1]), "X[3, 1]", "inf"
    ),
    "discriminant analysis: frequencies of another sum": case(
        lambda: eigenproblems.SampledLDA(3, [0.5, 0.6]), "priors", "[0.5, 0.6]"
    ),
    "discriminant analysis: half a row to draw from": case(
        lambda: eigenproblems.SampledLDA(3, [0.5, 0.5], 0.5), "n_samples", "0.5"
    ),
    "discriminant analysis: batches of one row": case(
        lambda: go(data=_labelled()[0], problem=_labelled()[1], X0=np.ones((1, 4, 1)), batch_size=1), "batch_size", "1"
    ),
}
"""Cases of `cdfsg.eigenproblems`; collected where there is one."""


def _labelled():
    return eigenproblems.discriminant_analysis(NUMBERS**0.5, [0, 1] * 3)


if StochasticGCCA is not None:
    BAD |= ESTIMATOR
if eigenproblems is not None:
    BAD |= EIGENPROBLEMS


@cache
def told(name):
    """Kind and text of what a case raises, without where the project lies and which notebooks it has."""
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            BAD[name].call()
    except (Exception, SystemExit) as error:
        text = f"{type(error).__name__}: {error}"
        return text.replace(str(ROOT), "ROOT").replace(", ".join(notebooks.names()), "NOTEBOOKS")
    return "nothing was raised"


def faults(case, text):
    """What is wrong with a text: a name that it lacks, or the remedy."""
    return [f"does not name {name}" for name in case.names if name not in text] + (
        [] if REMEDY.search(text) else ["does not say what to do"]
    )


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_with_a_text_that_names_the_argument_and_says_what_is_expected(name, tally):
    text = told(name)
    found = faults(BAD[name], text)
    tally.count(not found and not text.startswith("nothing"))
    assert not found, text


@pytest.mark.case("bad input: the text is the one on record")
@pytest.mark.parametrize("name", BAD)
def test_the_text_of_a_refusal_is_the_one_on_record(name):
    with open(SNAPSHOT, "rb") as file:
        recorded = tomllib.load(file)
    assert told(name) == recorded.get(name), "if the change is meant: python -m tests.torture.test_bad_input"


def test_the_record_has_no_text_of_a_case_that_is_no_more_and_there_are_enough_cases():
    with open(SNAPSHOT, "rb") as file:
        recorded = tomllib.load(file)
    assert set(recorded) <= set(BAD | ESTIMATOR | EIGENPROBLEMS) and len(BAD) >= 60


# --- what looks bad and is not ---------------------------------------------------------------------------

WORKS = pytest.mark.case("bad input: looks like it, and gives the right numbers")


def by_hand(name, data, X, batch_size, order, settings):
    """One pass of CDFSG, CDFSG-Ada or Landing with n-by-n matrices."""
    if name != "Landing":
        s1, s2, steps = settings["s1"], settings["s2"], data.n_samples // batch_size
        return direct.dense_run(SOLVERS[name](), data, X, s1, s2, batch_size, order, np.float64, steps)[0]
    blocks = np.zeros((data.n_features,) * 2)
    for view in data.slices:
        blocks[view, view] = 1
    for rows in data.batches(batch_size, [order, 0], np.float64):
        S = rows.T @ rows / batch_size
        U, G = S * blocks @ X, -(S * (1 - blocks)) @ X
        relative = 0.5 * (G @ U.T @ U - U @ G.T @ U)
        X = X - settings["eta"] * (relative + settings["omega"] * U @ (X.T @ U - np.eye(X.shape[1])))
    return X


JOINT = ["CDFSG", "CDFSG-Ada", "Landing"]


def agrees(name, data, p, batch_size=10, **settings):
    """Whether the engine's lane is the one computed by hand; 1e-9: rounding of some ten steps, with a margin."""
    X0 = initial_points(SOLVERS[name](), data.n_features, p, [3])
    settings = SETTINGS[name] | settings
    lane = go(name, data, X0=X0, batch_size=batch_size, settings={key: [value] for key, value in settings.items()})
    expected = by_hand(name, data, X0[0], batch_size, 5, settings)
    # Algorithms 1 and 2 start with D = 0: their first step stands still.
    assert np.isfinite(expected).all() and (np.abs(expected - X0[0]).max() > 1e-4 or lane.steps == 1)
    np.testing.assert_allclose(lane.X[0], expected, rtol=0, atol=1e-9)
    return lane


@WORKS
@pytest.mark.parametrize("name", JOINT)
@pytest.mark.parametrize(
    "sizes, p", [((4, 3), 7), ((4, 3), 5), ((1, 1), 1), ((1, 1), 2), ((1, 6), 1), ((3, 2, 4), 9)],
    ids=["p = n", "p above n_i", "one column per view", "one column per view, p = n", "a view of one column",
         "p = n, three views"],
)  # fmt: skip
def test_as_many_columns_as_rows_and_views_of_one_column_give_the_numbers_of_the_plain_formulas(name, sizes, p):
    agrees(name, make_views(60, sizes, (0.7,), seed=2), p)


@WORKS
@pytest.mark.parametrize("name", JOINT)
@pytest.mark.parametrize("batch_size", [1, 59, 60], ids=["one row", "all but one", "all rows"])
def test_batches_of_one_row_and_of_all_give_the_numbers_of_the_plain_formulas(name, batch_size):
    step = {"s2": 0.01} if name == "CDFSG" else {"eta": 0.002} if name == "Landing" else {}
    lane = agrees(name, make_views(60, (4, 3), (0.7,), seed=2), 2, batch_size, **step)
    assert lane.steps == 60 // batch_size


@WORKS
@pytest.mark.parametrize("b", [1.0, 1.5])
def test_a_tracker_with_b_of_one_and_above_gives_the_numbers_of_the_plain_formulas(b):
    agrees("CDFSG", make_views(60, (4, 3), (0.7,), seed=2), 2, s1=0.05 / b, s2=0.05)


@WORKS
def test_a_tracker_that_cannot_be_stable_stops_its_lane_and_not_its_neighbour():
    data = make_views(4000, (4, 3), (0.7,), seed=2)
    both = go(data=data, lanes=2, batch_size=50, settings={"s1": np.array([0.1, 0.1 / 4]), "s2": np.full(2, 0.1)})
    one = go(data=data, batch_size=50, settings={"s1": [0.1], "s2": [0.1]})
    assert both.stopped_at[0] == -1 < both.stopped_at[1] and np.isnan(both.X[:, 1]).all()
    np.testing.assert_allclose(both.X[0], one.X[0], rtol=0, atol=1e-9)


@WORKS
def test_rsg_plus_takes_as_many_columns_as_the_narrower_view_and_stays_orthonormal():
    data = make_views(60, (4, 3), (0.9,), seed=2)
    X = go("RSG+", data, p=3, batch_size=12).X[0]
    for view in data.slices:
        np.testing.assert_allclose(X[view].T @ X[view], np.eye(3), atol=1e-9)


@WORKS
@pytest.mark.parametrize("name", JOINT)
def test_constant_columns_keep_their_start_and_the_others_get_the_numbers_that_they_get_alone(name):
    data = small()
    wide = np.insert(data.data, [0, 2, 7], [3.0, -1e6, 0.0], axis=1)
    kept = np.array([1, 2, 4, 5, 6, 7, 8])
    constant = Views("constant", wide, (6, 4), 1.0, True, MADE)
    X0 = initial_points(SOLVERS[name](), 10, 2, [3])
    X = go(name, constant, X0=X0).X
    np.testing.assert_allclose(X[:, [0, 3, 9]], X0[:, [0, 3, 9]], atol=1e-7)  # -1e6 is centred to some 1e-10
    np.testing.assert_allclose(X[:, kept], go(name, data, X0=X0[:, kept]).X, atol=1e-7)
    correlations = [metrics.canonical_correlations(some.covariance, some.sizes) for some in (data, constant)]
    np.testing.assert_allclose(correlations[1][:3], correlations[0], atol=1e-9)
    K = [metrics.cross_moments(Y, some.covariance, some.sizes) for Y, some in ((X[:, kept], data), (X, constant))]
    np.testing.assert_allclose(metrics.tcc(K[1]), metrics.tcc(K[0]), atol=1e-9)


@WORKS
@pytest.mark.parametrize("name", JOINT)
def test_data_that_are_constant_altogether_move_nothing_and_have_no_correlation(name):
    data = views(np.full((60, 4), 7.0))
    X0 = initial_points(SOLVERS[name](), 4, 2, [3])
    X = go(name, data, X0=X0).X
    np.testing.assert_array_equal(X, X0)
    K = metrics.cross_moments(X, data.covariance, data.sizes)
    assert metrics.tcc(K) == 0 == metrics.paired_correlations(K)
    np.testing.assert_array_equal(metrics.canonical_correlations(data.covariance, data.sizes), 0)


@WORKS
def test_one_column_per_view_has_the_correlation_of_two_columns():
    x, y = np.random.default_rng(0).normal(size=(2, 50))
    data = views(np.stack([x, y + 0.3 * x], axis=1), (1, 1))
    expected = abs(np.corrcoef(data.data.T)[0, 1])
    np.testing.assert_allclose(metrics.canonical_correlations(data.covariance, (1, 1)), [expected])
    K = metrics.cross_moments(go("Landing", data, p=1).X, data.covariance, (1, 1))
    np.testing.assert_allclose(metrics.tcc(K), expected)


@WORKS
def test_the_same_data_as_two_views_are_correlated_by_one():
    some = np.random.default_rng(0).normal(size=(50, 3))
    data = views(np.hstack([some, some]), (3, 3))
    np.testing.assert_allclose(metrics.canonical_correlations(data.covariance, (3, 3)), 1)


KINDS = ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", ">f8", ">u2"]


@WORKS
@pytest.mark.parametrize("kind", KINDS)
def test_no_type_overflows_and_all_give_the_numbers_of_their_copy_in_double_precision(kind):
    kind = np.dtype(kind)
    rng = np.random.default_rng(0)
    if kind.kind == "f":
        stored = (rng.normal(size=(600, 4)) * 1000).astype(kind)
    else:  # the ends of the range, whose sums and squares do not fit
        ends = np.iinfo(kind)
        stored = np.array([ends.min, 0, ends.max // 2, ends.max], dtype=kind)[rng.integers(0, 4, (600, 4))]
        stored[:, 3] = ends.max
    scale = 1 / float(np.abs(stored.astype(float)).max())
    short, long = (Views("x", values, (2, 2), scale, True, MADE) for values in (stored, stored.astype(np.float64)))
    exact = scale * stored.astype(np.float64)
    # 1e-12: sums of 600 numbers of size 1 in double precision.
    np.testing.assert_allclose(short.mean, exact.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(short.covariance, np.cov(exact.T, bias=True), atol=1e-12)
    np.testing.assert_allclose(short.rows([0, 599], np.float64), exact[[0, 599]] - exact.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(short.rows([5]), long.rows([5]), atol=1e-6)
    for name in JOINT:
        np.testing.assert_allclose(go(name, short).X, go(name, long).X, atol=1e-9)


@WORKS
@pytest.mark.parametrize("layout", ["by columns", "every other row", "reversed"])
def test_any_layout_in_memory_gives_the_numbers_of_a_plain_copy(layout):
    data = small()
    twice = np.repeat(data.data, 2, axis=0)
    table = {
        "by columns": np.asfortranarray(data.data), "every other row": twice[::2],
        "reversed": np.ascontiguousarray(data.data[:, ::-1])[:, ::-1],
    }[layout]  # fmt: skip
    np.testing.assert_array_equal(go(data=views(table, data.sizes)).X, go(data=views(data.data, data.sizes)).X)


@WORKS
@pytest.mark.parametrize("name", JOINT)
def test_finite_numbers_whose_squares_are_not_are_reported_as_diverged_and_nothing_warns(name):
    data = views(np.random.default_rng(0).normal(size=(60, 4)) * 1e200)
    lane = go(name, data)
    assert lane.stopped_at[0] > 0 and np.isnan(lane.X).all()


@WORKS
def test_a_score_of_rows_far_from_the_mean_loses_no_digits_and_constant_rows_have_none():
    left, right = noise(4), noise(4)[:, :3] + noise(3)
    model = fit([left, right], n_components=2)
    # 1e-6: the mean of 1e9 leaves seven digits of the data.
    np.testing.assert_allclose(model.score([left + 1e9, right]), model.score([left, right]), atol=1e-6)
    assert model.score([np.full((60, 4), 0.1), np.full((60, 3), 0.3)]) == 0
    assert model.score([np.full((60, 4), 0.1), right]) == 0


@WORKS
@pytest.mark.filterwarnings("ignore:not converged")  # three passes are nine steps
@pytest.mark.parametrize("third", [0, 1], ids=["a copy", "a constant"])
def test_components_beyond_the_rank_of_a_view_lie_in_the_other_one_and_have_no_correlation(third):
    left, two = noise(4), noise(4)[:, :2] + noise(2)
    right = np.column_stack([two, [two[:, 0], np.ones(60)][third]])
    model = fit([left, right], n_components=3, n_epochs=3)
    views_and_weights = zip((left, right), model.weights_, strict=True)
    constraint = sum(w.T @ np.cov(view.T, bias=True) @ w for view, w in views_and_weights)
    np.testing.assert_allclose(constraint, np.eye(3), atol=1e-9)
    assert (np.abs(model.canonical_correlations_[:2]) > 0.1).all() and abs(model.canonical_correlations_[2]) < 1e-6


@WORKS
def test_chunks_that_turn_from_dense_to_sparse_give_the_numbers_of_dense_ones():
    left, right = noise(4), noise(3)
    as_they_are = [[left[:30], right[:30]], [sparse.csr_array(left[30:]), right[30:]]]
    dense = fit(iter([[left[:30], right[:30]], [left[30:], right[30:]]]))
    np.testing.assert_allclose(fit(iter(as_they_are)).weights_[0], dense.weights_[0], atol=1e-9)


@WORKS
def test_a_fit_that_fails_leaves_no_mixture_with_the_one_before():
    model = fit()
    with pytest.raises(ValueError, match="NaN"):
        model.fit([np.full((60, 2), np.nan), noise(3)])
    with pytest.raises(ValueError, match="not fitted"):
        model.transform([noise(4), noise(3)])


if __name__ == "__main__":
    warnings.simplefilter("error")
    os.environ.setdefault("CDFSG_MEDIAMILL", "surrogate")
    lines = [f"{json.dumps(name)} = {json.dumps(told(name))}\n" for name in BAD]
    write_atomically(SNAPSHOT, "# Written by python -m tests.torture.test_bad_input\n" + "".join(lines))

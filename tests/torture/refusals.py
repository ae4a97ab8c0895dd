"""Input that no run can use, a call per case; ``bad_input.toml`` has the text of its error."""

import contextlib
import io
import os
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from unittest import mock

import numpy as np
from scipy import sparse

from cdfsg import __main__ as cli
from cdfsg import metrics
from cdfsg.datasets import Provenance, Views, data_dir, load, load_mediamill, load_nmnist, make_views
from cdfsg.linalg import inv_sqrt, truncated_inv_sqrt
from cdfsg.merits import Huber, Identity, make_merit
from cdfsg.metrics import canonical_correlations as correlations
from cdfsg.metrics import cross_moments as moments
from cdfsg.paper.experiments import find
from cdfsg.paper.report import notebooks
from cdfsg.paper.results.reported import load_table, tolerance_of
from cdfsg.penalty import Penalty
from cdfsg.problems import GCCA, Linear, Quadratic, SampledGCCA
from cdfsg.solvers import SOLVERS
from cdfsg.solvers.cdfsg import CDFSG, CDFSGAda
from cdfsg.solvers.engine import initial_points, run
from cdfsg.solvers.rsg_plus import RSGPlus
from tests.solvers.data import GOOD

BAD = {}
"""Calls that must raise, by door and case."""


def door(group, cases):
    """Add the cases of one door, ``{name: call}``."""
    BAD.update({f"{group}: {name}": case for name, case in cases.items()})


def each(argument, call, *values):
    """Cases that differ in the value of one argument, which the text names with its value."""
    return {f"{argument}={value!r}": partial(call, value) for value in values}


MADE = Provenance("made up", "sha256:0", "synthetic")
NUMBERS = np.arange(24.0).reshape(6, 4)
NAN, SKEW = np.full((4, 4), np.nan), np.triu(np.ones((4, 4)))


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
    values = {key: np.full(lanes, value) for key, value in GOOD[name].items()}
    problem = options.pop("problem", None) or SampledGCCA(data.sizes, merit or Identity())
    options.setdefault("dtype", np.float64)
    return run(solver, problem, data, X0, values | (settings or {}), batch_size, order, **options)


def bare(solver=None, data=None, settings=None):
    settings = {} if settings is None else settings
    problem, data = SampledGCCA((4, 3), Identity()), small() if data is None else data
    return run(CDFSG() if solver is None else solver, problem, data, np.ones((1, 7, 2)), settings, 10, 5)


def exact(covariance=None, sizes=(2, 2), merit=None):
    return GCCA(np.eye(4) if covariance is None else covariance, sizes, merit or Identity())


def penalty(M=None, beta=1.0):
    return Penalty(Quadratic(np.eye(2)), np.eye(2) if M is None else M, beta)


def loaded(load, variable, value):
    """A data set loaded under an environment variable."""
    with mock.patch.dict(os.environ, {f"CDFSG_{variable}": value}):
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


door("views", {
    "a single row": lambda: views(np.ones((1, 4))),
    "no row": lambda: views(np.ones((0, 4))),
    "one dimension": lambda: views(np.ones(4)),
    "three dimensions": lambda: views(np.ones((6, 2, 2))),
    "no column": lambda: views(np.ones((6, 0)), ()),
    "a nested list": lambda: views(NUMBERS.tolist()),
    "complex numbers": lambda: views(NUMBERS + 1j),
    "objects": lambda: views(NUMBERS.astype(object)),
    "strings": lambda: views(NUMBERS.astype(str)),
    "truth values": lambda: views(NUMBERS > 3),
    "dates": lambda: views(NUMBERS.astype("M8[s]")),
    "a masked array": lambda: views(np.ma.masked_less(NUMBERS, 3)),
    "a sparse matrix": lambda: views(sparse.csr_array(NUMBERS)),
    "NaN": lambda: views(holding(np.nan)),
    "infinity": lambda: views(holding(np.inf)),
    "minus infinity far down": lambda: views(holding(-np.inf, 2000, 2, 2100)),
    **each("sizes", lambda v: views(sizes=v), (2, 3), (4, 0), (5, -1), (1.5, 2.5), (), 4, "halves", (np.nan, 2)),
    **each("scale", lambda v: views(scale=v), 0.0, -1.0, np.inf, "1", True),
    "a provenance of no known kind": lambda: Provenance("x", "sha256:0", "real"),
    "a matrix of numpy's old kind": lambda: views(NUMBERS.view(np.matrix)),
    "widths that are truth values": lambda: views(NUMBERS[:, :2], (True, True)),
    "the centring is a word": lambda: views(centred="no"),
    "no provenance": lambda: Views("x", NUMBERS, (2, 2), 1.0, True, None),
})  # fmt: skip
door("rows", {
    "one beyond the end": lambda: views().rows([6]),
    "a negative one": lambda: views().rows([0, -1]),
    "numbers with a fraction": lambda: views().rows([0.0, 1.0]),
    "a mask": lambda: views().rows(np.ones(6, dtype=bool)),
    "two dimensions": lambda: views().rows([[0, 1]]),
    "an integer type": lambda: views().rows([0], np.int64),
})  # fmt: skip
door("batches", {
    **each("batch_size", lambda v: views().batches(v, 1), 0, -1, 7, 2.5, True, "20"),
    "of an integer type": lambda: next(views().batches(2, 0, np.uint8)),
    **each("seed", lambda v: views().batches(2, v), -1, "abc"),
})  # fmt: skip
door("make_views", {
    **each("n_samples", lambda v: make_views(v, (2, 2), [], 0), 1, 2.5),
    **each("sizes", lambda v: make_views(9, v, [], 0), (0, 3), (1.5, 3), 4),
    **each("correlations", lambda v: make_views(9, (2, 2), v, 0),
           [1.5], [-0.1], [np.nan], [0.5] * 3, ["a"], [0.5j], None),
    "too few rows for an exact sample": lambda: make_views(5, (2, 2), [0.5], 0, exact=True),
    **each("condition", lambda v: make_views(9, (2, 2), [], 0, condition=v), 0.5, np.inf, "x"),
    **each("offset", lambda v: make_views(9, (2, 2), [], 0, offset=v), -1.0, "x"),
    "a negative seed": lambda: make_views(9, (2, 2), [], -1),
    "exactness is a word": lambda: make_views(9, (2, 2), [], 0, exact="no"),
})  # fmt: skip
door("data sets", {
    "an unknown name": lambda: load("mnsit"),
    "the name is a list": lambda: load(["digits"]),
    "Mediamill's folder is not there": lambda: loaded(load_mediamill, "MEDIAMILL", "/nonexistent"),
    "Mediamill is in a file of no known kind": lambda: loaded(load_mediamill, "MEDIAMILL", __file__),
    "n-MNIST's folder is not there": lambda: loaded(load_nmnist, "NMNIST_DIR", "/nonexistent"),
    "Mediamill lies with a user that there is not": lambda: loaded(load_mediamill, "MEDIAMILL", "~nobody.here/x"),
    "the data folder of a user that there is not": lambda: loaded(data_dir, "DATA_DIR", "~nobody.here/x"),
})  # fmt: skip
door("merit", {
    "an unknown name": lambda: make_merit("hubert", 0.1),
    "the name is a list": lambda: make_merit(["huber"], 0.1),
    **each("mu", lambda v: Huber(v), 0.0, np.nan, "0.1"),
})  # fmt: skip
door("problem", {
    **each("sizes", lambda v: SampledGCCA(v, Identity()), (), (4,), (4, 0), (1.5, 2.5), 4),
    "the merit is a word": lambda: SampledGCCA((2, 2), "identity"),
    "the merit is a class": lambda: SampledGCCA((2, 2), Identity),
    "weights of another shape": lambda: SampledGCCA((2, 2), Identity(), np.eye(3)),
    "weights that are not symmetric": lambda: SampledGCCA((2, 2), Identity(), [[0, 1], [2, 0]]),
    "a weight of NaN": lambda: SampledGCCA((2, 2), Identity(), NAN[:2, :2]),
    "weights are words": lambda: SampledGCCA((2, 2), Identity(), [["a", "b"]] * 2),
    "complex weights": lambda: SampledGCCA((2, 2), Identity(), np.eye(2) * 1j),
})  # fmt: skip
door("exact problem", {
    "a covariance that is not square": lambda: exact(np.ones((4, 3))),
    "a covariance with NaN": lambda: exact(NAN),
    "a covariance that is not symmetric": lambda: exact(SKEW),
    "a covariance of objects": lambda: exact(np.eye(4, dtype=object)),
    "sizes of another sum": lambda: exact(sizes=(2, 3)),
    "one view": lambda: exact(sizes=(4,)),
    "a global Lipschitz constant with Huber's merit": lambda: exact(merit=Huber(0.1)).lipschitz,
    "a covariance of integers": lambda: exact(np.eye(4, dtype=int)),
    "a negative variance": lambda: exact(-np.eye(4)),
    "weights that are not symmetric": lambda: GCCA(np.eye(2), (1, 1), Identity(), [[0, 1], [2, 0]]),
    "X of another height": lambda: exact().value(np.ones((9, 2))),
    "X of integers": lambda: exact().gradient(np.ones((4, 2), int)),
})  # fmt: skip
door("quadratic", {
    "X of another height": lambda: Quadratic(np.eye(3)).value(np.ones((2, 1))),
    "X is a vector": lambda: Quadratic(np.eye(3)).gradient(np.ones(3)),
    "a vector": lambda: Quadratic(np.ones(4)),
    "three dimensions": lambda: Quadratic(np.ones((1, 1, 1))),
    "infinity": lambda: Quadratic(np.full((2, 2), np.inf)),
    "strings": lambda: Quadratic(np.full((2, 2), "a")),
    "complex numbers": lambda: Quadratic(np.eye(2) * 1j),
})  # fmt: skip
door("linear", {
    "X of another shape": lambda: Linear(np.ones((1, 1))).gradient(np.ones((3, 2))),
    "complex numbers": lambda: Linear(np.ones((2, 1)) * 1j),
})  # fmt: skip
door("penalty", {
    "M is not square": lambda: penalty(np.ones((2, 3))),
    "M holds NaN": lambda: penalty(NAN[:2, :2]),
    **each("beta", lambda v: penalty(beta=v), 0.0, "1", True, np.nan, np.inf),
    "a problem that is a word": lambda: Penalty("quadratic", np.eye(2), 1.0),
    "a problem that is a class": lambda: Penalty(Quadratic, np.eye(2), 1.0),
    "M holds words": lambda: penalty(np.eye(2).astype(str)),
    "complex M": lambda: penalty(np.eye(2) * 1j),
    "M has a negative diagonal": lambda: penalty(-np.eye(2)),
    "a small M that is not symmetric": lambda: penalty(np.array([[1e-12, 1e-9], [0, 1e-12]])),
    "X of another height": lambda: penalty().value(np.ones((3, 1))),
    "a threshold for no column": lambda: penalty().threshold(0),
    "a threshold with a singular M": lambda: penalty(np.diag([0.0, 1.0])).threshold(1),
})  # fmt: skip
door("metrics", {
    "correlations captured of three views": lambda: metrics.tcc(np.ones((3, 3, 1, 2, 2))),
    "canonical correlations of one view": lambda: correlations(np.eye(4), (4,)),
    "sizes of another sum": lambda: moments(np.ones((1, 4, 2)), np.eye(4), (2, 3)),
    "X of another height": lambda: moments(np.ones((1, 3, 2)), np.eye(4), (2, 2)),
    **each("p", lambda v: metrics.minimiser(np.eye(4), (2, 2), v), 0, 5, 1.5),
    "eigenvalues of views of another sum": lambda: metrics.generalised_eigenvalues(np.eye(4), (5, 4)),
    "eigenvalues of a covariance with NaN": lambda: metrics.generalised_eigenvalues(NAN, (2, 2)),
    "a single X": lambda: moments(np.ones((4, 2)), np.eye(4), (2, 2)),
    "complex X": lambda: moments(np.ones((1, 4, 2)) * 1j, np.eye(4), (2, 2)),
    "a covariance that is not square": lambda: correlations(np.ones((4, 3)), (2, 2)),
    "a covariance of integers": lambda: correlations(np.eye(4, dtype=int), (2, 2)),
    "a complex covariance": lambda: correlations(np.eye(4) * 1j, (2, 2)),
    "a covariance that is a list": lambda: correlations([[1.0, 0.0], [0.0, 1.0]], (1, 1)),
    "a covariance that is not symmetric": lambda: correlations(SKEW, (2, 2)),
    "a negative variance": lambda: correlations(-np.eye(4), (2, 2)),
    "a covariance with correlations above 1": lambda: correlations(np.array([[1.0, 5.0], [5.0, 1.0]]), (1, 1)),
    "sizes is a number": lambda: correlations(np.eye(4), 4),
    **each("rtol", lambda v: correlations(np.eye(4), (2, 2), rtol=v), 2.0, np.nan),
    "a negative ridge": lambda: metrics.ridged(np.eye(4), (2, 2), -5.0),
    "a bound for more columns than eigenvalues": lambda: metrics.objective_bound(np.ones(3), 9, 2, Identity()),
    "a bound for one view": lambda: metrics.objective_bound(np.ones(3), 1, 1, Huber(0.1)),
    "moments of another shape": lambda: metrics.tcc(np.eye(2)),
    "a factor of another shape": lambda: metrics.congruence(np.ones((2, 2, 1, 2, 2)), np.eye(3)),
    "the merit is a word": lambda: metrics.objective(np.ones((2, 2, 1, 2, 2)), "identity"),
    "a single matrix to orthogonalise": lambda: metrics.orthogonalise(np.eye(2)),
})  # fmt: skip
door("linalg", {
    "an inverse root of a vector": lambda: inv_sqrt(np.ones(3)),
    "an inverse root of words": lambda: inv_sqrt(np.eye(2).astype(str)),
    "a truncated inverse root with NaN": lambda: truncated_inv_sqrt(NAN[:2, :2], 1e-10),
    "an inverse root of a singular matrix": lambda: inv_sqrt(np.diag([0.0, 1.0])),
    "an inverse root with NaN": lambda: inv_sqrt(NAN[:2, :2]),
})  # fmt: skip
door("solver", {
    "X0 with two dimensions": lambda: go(X0=np.ones((7, 2))),
    "X0 of integers": lambda: go(X0=np.ones((1, 7, 2), dtype=int)),
    "X0 with NaN": lambda: go(X0=np.full((1, 7, 2), np.nan)),
    "complex X0": lambda: go(X0=np.ones((1, 7, 2)) * 1j),
    "X0 of objects": lambda: go(X0=np.ones((1, 7, 2), dtype=object)),
    "X0 without a lane": lambda: go(X0=np.ones((0, 7, 2)), lanes=0),
    "X0 of another height": lambda: go(X0=np.ones((1, 5, 2))),
    "more columns than rows": lambda: go(X0=np.ones((1, 7, 8))),
    **each("s2", lambda v: go(settings={"s2": v}), [-0.1], [0.0], ["fast"], [0.1j], [0.1, 0.1], 0.1),
    "a step of NaN": lambda: go(settings={"s1": [np.nan]}),
    "an infinite step": lambda: go("Landing", settings={"eta": [np.inf]}),
    "a setting that it does not have": lambda: go(settings={"eta": [0.1]}),
    "a setting is missing": lambda: bare(settings={"s1": [0.5]}),
    **each("batch_size", lambda v: go(batch_size=v), 0, 61, 2.5, "ten"),
    **each("order", lambda v: go(order=v), -1, 1.5, True),
    "no order for two streams": lambda: go(order=None),
    "an integer type": lambda: go(dtype=np.int64),
    "a problem of other views": lambda: go(problem=SampledGCCA((3, 4), Identity())),
    "a table in place of views": lambda: bare(data=np.ones((60, 7))),
    "masked values in X0": lambda: go(X0=np.ma.masked_less(np.arange(14.0).reshape(1, 7, 2), 3)),
    "an exact problem": lambda: go(problem=GCCA(np.eye(7), (4, 3), Identity())),
    "settings that are no mapping": lambda: bare(settings=3),
    "minibatches of an unknown kind": lambda: go(minibatches="all"),
    "no type": lambda: go(dtype=None),
    "its name in place of it": lambda: bare("CDFSG"),
})  # fmt: skip
door("start", {
    **each("p", lambda v: initial_points(CDFSG(), 7, v, [1]), 0, 8, 1.5, True),
    "half a row": lambda: initial_points(CDFSG(), 7.5, 2, [1]),
    **each("seeds", lambda v: initial_points(CDFSG(), 7, 2, v), 5, [True], [-1]),
    "no seed": lambda: initial_points(CDFSG(), 7, 2, []),
    "no solver": lambda: initial_points(None, 7, 2, [1]),
})  # fmt: skip
door("CDFSG", {
    **each("beta", lambda v: CDFSG(beta=v), 0.0, True, -0.1, "0.1"),
})  # fmt: skip
door("CDFSG-Ada", {
    **each("eta1", lambda v: CDFSGAda(eta1=v), 1.0, "0.9"),
    "a negative decay": lambda: CDFSGAda(eta2=-0.1),
    "epsilon of zero": lambda: CDFSGAda(epsilon=0.0),
    "a negative penalty": lambda: CDFSGAda(beta=-1.0),
})  # fmt: skip
door("RSG+", {
    "a negative weight": lambda: RSGPlus(weight=-0.1),
    "gamma of zero": lambda: RSGPlus(gamma=0.0),
    "an unknown treatment of singular blocks": lambda: RSGPlus(singular="skip"),
    "three views": lambda: go("RSG+", small((3, 3, 3))),
    "Huber's merit": lambda: go("RSG+", merit=Huber(0.1)),
    "data that are not centred": lambda: go("RSG+", replace(small(), centred=False)),
    "p that does not divide the batch": lambda: go("RSG+", p=3),
    "more columns than the narrower view": lambda: go("RSG+", p=5),
})  # fmt: skip
door("command", {
    "none": lambda: command(),
    "an unknown one": lambda: command("rnu"),
    "zero processes": lambda: command("run", "--jobs", "0"),
    "minus one process": lambda: command("quick", "--jobs", "-1"),
    "half a process": lambda: command("theory", "--jobs", "1.5"),
    "a filter without a value": lambda: command("status", "--only", "mnist"),
    "a filter that keeps nothing": lambda: command("status", "--only", "dataset=cifar"),
    "a cluster's address that is none": lambda: command("quick", "--dask", "nowhere"),
})  # fmt: skip
door("notebook", {
    "an unknown parameter": lambda: notebooks.execute("40_gcca", {"datset": "mnist"}, Path("x.ipynb")),
    "parameters for one that has none": lambda: notebooks.execute("00_start", {"dataset": "mnist"}, Path("x.ipynb")),
    "parameters without an output": lambda: notebooks.execute("40_gcca", {"dataset": "mnist"}),
    "an unknown one": lambda: notebooks.execute("99_none"),
    "a data set without a table": lambda: find("digits", "identity", "full"),
    "a merit without a table": lambda: find("mnist", "square", "full"),
    "an experiment of another profile": lambda: find("mnist", "identity", "quick"),
    "an unknown profile": lambda: find("mnist", "identity", "fast"),
})  # fmt: skip
door("paper", {
    "an unknown table": lambda: load_table("ta:none"),
    "an unknown quantity": lambda: tolerance_of("speed"),
})  # fmt: skip

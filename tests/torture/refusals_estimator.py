"""Input that the estimator and the eigenproblems cannot use; see `tests.torture.refusals`."""

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.model_selection import GroupKFold

from cdfsg import StochasticGCCA
from cdfsg.eigenproblems import SampledGEVP, SampledLDA
from cdfsg.eigenproblems import discriminant_analysis as lda
from cdfsg.eigenproblems import generalised_eigenproblem as gevp
from cdfsg.estimator import permutation_test
from tests.torture.refusals import NUMBERS, door, each, go, holding, small

LEFT, RIGHT = NUMBERS[:, :2], NUMBERS[:, 2:]
DAYS = pd.date_range("2026-01-01", periods=60)
OUTSIDE = sparse.csr_array((np.ones(6), np.full(6, 9), np.arange(7)), shape=(6, 2))


def fit(views=None, **parameters):
    some = [small().data[:, part] for part in small().slices] if views is None else views
    return StochasticGCCA(**{"random_state": 0, "n_epochs": 1} | parameters).fit(some)


def unfitted():
    return StochasticGCCA(n_components=2)


def noise(columns):
    return np.random.default_rng(columns).normal(size=(60, columns))


def frame(*names):
    return pd.DataFrame(np.random.default_rng(0).normal(size=(60, len(names))), columns=list(names))


def tested(**options):
    return permutation_test(StochasticGCCA(), [noise(4), noise(3)], **options)


def fewer_in_every_pass():
    lengths = iter([60, 50])
    return fit(lambda: iter([[view[:rows] for view in (noise(4), noise(3))] for rows in [next(lengths)]]),
               algorithm="cdfsg", n_epochs=2)  # fmt: skip


def labelled():
    return lda(NUMBERS**0.5, [0, 1] * 3)


door("estimator", {
    "zero views": lambda: fit([]),
    "one view": lambda: fit([LEFT]),
    "a dict of views": lambda: fit({"a": LEFT, "b": RIGHT}),
    "a path in place of a view": lambda: fit(["left.npy", RIGHT]),
    "a view of three dimensions": lambda: fit([NUMBERS.reshape(6, 2, 2), RIGHT]),
    "rows of unequal lengths": lambda: fit([[[1, 2], [3]] * 3, RIGHT]),
    "a column of dates": lambda: fit([frame("a").assign(day=pd.Timestamp(0)), frame("c")]),
    "a column of strings": lambda: fit([frame("a").astype(str), frame("c")]),
    "two columns of one name": lambda: fit([frame("a", "a"), frame("c")]),
    "the rows of a frame in another order": lambda: fit([frame("a"), frame("c")[::-1]]),
    "numbers beyond double precision": lambda: fit([np.full((6, 2), 10**400, dtype=object), RIGHT]),
    "a sparse view with an index beyond its end": lambda: fit([OUTSIDE, RIGHT]),
    "numbers whose squares are too large": lambda: fit([noise(2) * 1e200, noise(2)]),
    "numbers whose squares are too small": lambda: fit([noise(2), noise(2) * 1e-200]),
    "fewer directions than components": lambda: fit([noise(4)[:, [0, 1, 0]], noise(2)[:, [1, 0, 0]]], n_components=3),
    "a function that returns no iterator": lambda: fit(lambda: None),
    "the centring is a word": lambda: fit(center="no"),
    "the scaling is no truth value": lambda: fit(scale=None),
    "the shuffling is a word": lambda: fit(shuffle="no"),
    **each("step_size", lambda v: fit(step_size=v), True, 0.0, -1.0, np.inf),
    **each("tol", lambda v: fit(tol=v), True, -1.0),
    **each("random_state", lambda v: fit(random_state=v), "x", -1, True),
    **each("callbacks", lambda v: fit(callbacks=v), [None], 3),
    "a number of widths beside a list": lambda: fit(view_sizes=7),
    "an unknown word beside a list": lambda: fit(view_sizes="thirds"),
    "a table of a list of views": lambda: fit().set_output(transform="pandas").transform([noise(4), noise(3)]),
    "a score of numbers whose squares are too large": lambda: fit().score([noise(4) * 1e300, noise(3)]),
    "a calibration on rows that are all alike":
        lambda: fit(n_components=2).calibrate([np.ones((9, 4)), np.ones((9, 3))]),
    "one array without widths": lambda: fit(NUMBERS),
    "a single row": lambda: fit([LEFT[:1], RIGHT[:1]]),
    "no row": lambda: fit([LEFT[:0], RIGHT[:0]]),
    "a view of one dimension": lambda: fit([LEFT, RIGHT[:, 0]]),
    "a view of no column": lambda: fit([LEFT[:, :0], RIGHT]),
    "unequal row counts": lambda: fit([LEFT, RIGHT[:5]]),
    "NaN": lambda: fit([LEFT, holding(np.nan)[:, :2]], n_components=1),
    "infinity": lambda: fit([holding(np.inf)[:, :2], RIGHT]),
    "complex numbers": lambda: fit([LEFT * 1j, RIGHT]),
    "objects that are no numbers": lambda: fit([np.array([["a", None]] * 6, dtype=object), RIGHT]),
    "strings": lambda: fit([np.full((6, 2), "a"), RIGHT]),
    "masked values": lambda: fit([np.ma.masked_less(LEFT, 3), RIGHT]),
    "all views constant": lambda: fit([np.ones((60, 2)), np.ones((60, 2))]),
    "one view constant": lambda: fit([noise(2), np.ones((60, 2))]),
    "an iterator that gives nothing": lambda: fit(iter([])),
    **each("n_components", lambda v: fit(n_components=v), 4, 0, 1.5),
    "no pass": lambda: fit(n_epochs=0),
    **each("batch_size", lambda v: fit(batch_size=v), 1, 61, "all"),
    "an unknown merit": lambda: fit(merit="square"),
    **each("algorithm", lambda v: fit(algorithm=v), "adam", ["cdfsg"]),
    "a threshold of zero": lambda: fit(merit="huber", mu=0.0),
    "a negative penalty": lambda: fit(penalty=-1.0),
    **each("tracking", lambda v: fit(tracking=v), 1.5, 0.0),
    **each("view_sizes", lambda v: fit(NUMBERS, view_sizes=v), (2, 3), (4, 0), (2.0, 2.0), (4,), "thirds", np.array(3)),
    "one column in two halves": lambda: fit(NUMBERS[:, :1], view_sizes="halves"),
    "widths beside a list of other widths": lambda: fit([LEFT, RIGHT], view_sizes=(1, 3)),
    "a transform of another number of views": lambda: fit().transform([LEFT, RIGHT, LEFT]),
    "a transform of other widths": lambda: fit().transform([LEFT, RIGHT]),
    "a transform of other column names":
        lambda: fit([frame("a", "b"), frame("c")]).transform([frame("b", "a"), frame("c")]),
    "a transform of numbered columns in another order":
        lambda: fit([frame(0, 1), frame("c")]).transform([frame(1, 0), noise(1)]),
    "a transform of no view": lambda: fit().transform([None, None]),
    "fewer rows in a later pass": fewer_in_every_pass,
    "a sparse frame that leaves out NaN":
        lambda: fit([frame("a").astype(pd.SparseDtype(float, np.nan)), frame("c")]),
    "rows of text dates in another order":
        lambda: fit([frame("a").set_axis(DAYS), frame("c").set_axis(DAYS.strftime("%Y/%m/%d"))[::-1]]),
    "ridge for three views": lambda: fit(ridge=np.ones(3)),
    "no fold": lambda: tested(cv=[]),
    "folds of two rows": lambda: tested(cv=30),
    "rows of a fold beyond the end": lambda: tested(cv=[(range(30), range(30, 61))]),
    "a splitter that needs groups": lambda: tested(cv=GroupKFold(3)),
    **each("level", lambda v: tested(level=v), "x", 2, -1, np.nan),
    "a transform before a fit": lambda: unfitted().transform([LEFT, RIGHT]),
    "rows too few for a first step": lambda: unfitted().set_params(algorithm="cdfsg").partial_fit(
        [LEFT[:2], RIGHT[:2]]).transform([LEFT, RIGHT]),
})  # fmt: skip
door("eigenproblem", {
    "no row of X": lambda: SampledGEVP(0),
    "half a row of X": lambda: SampledGEVP(1.5),
    "two shapes": lambda: gevp(LEFT, RIGHT[:5]),
    "one dimension": lambda: gevp(np.ones(4), np.ones(4)),
    "NaN": lambda: gevp(NUMBERS, holding(np.nan)),
    "complex numbers": lambda: gevp(NUMBERS * 1j, NUMBERS),
    "strings": lambda: gevp(NUMBERS, NUMBERS.astype(str)),
    "rows of unequal lengths": lambda: gevp([[1, 2], [3]], [[1, 2], [3]]),
    "masked values": lambda: gevp(NUMBERS, np.ma.masked_less(NUMBERS, 3)),
    "a sparse matrix": lambda: gevp(sparse.csr_array(NUMBERS), NUMBERS),
    "other widths": lambda: gevp(NUMBERS, LEFT),
    "RSG+": lambda: go("RSG+", gevp(LEFT, RIGHT)[0], problem=SampledGEVP(2), X0=np.ones((1, 2, 1))),
    "the centring is a word": lambda: gevp(NUMBERS, NUMBERS, centred="no"),
})  # fmt: skip
door("discriminant analysis", {
    "labels without an order": lambda: lda(NUMBERS, np.array([1, "a"] * 3, dtype=object)),
    "masked labels": lambda: lda(NUMBERS, np.ma.masked_equal([0, 1] * 3, 1)),
    **each("priors", lambda v: SampledLDA(3, v), ["a", "b"], [0.5, 0.6]),
    "the number of rows is a word": lambda: SampledLDA(3, [0.5, 0.5], "x"),
    "a label too few": lambda: lda(NUMBERS, [0, 0, 0, 1, 1]),
    "one class": lambda: lda(NUMBERS, np.zeros(6)),
    "a class of one sample": lambda: lda(NUMBERS, [0, 0, 0, 0, 0, 1]),
    "a missing label": lambda: lda(NUMBERS, [0, 0, 0, 1, 1, np.nan]),
    "infinity": lambda: lda(holding(np.inf), [0, 0, 0, 1, 1, 1]),
    "half a row to draw from": lambda: SampledLDA(3, [0.5, 0.5], 0.5),
    "labels as indicators": lambda: lda(NUMBERS, np.eye(2)[[0, 1] * 3]),
    "no label": lambda: lda(NUMBERS, np.array(["a", "a", "b", None, "b", "b"])),
    "a class of one sample, by name": lambda: lda(NUMBERS, ["a"] * 5 + ["b"]),
    **each("priors", lambda v: SampledLDA(2, v), [1.0], [1.0, 0.0], [[0.5, 0.5]]),
    "the number of rows is NaN": lambda: SampledLDA(2, [0.5, 0.5], np.nan),
    "RSG+": lambda: go("RSG+", labelled()[0], problem=labelled()[1], X0=np.ones((1, 4, 1))),
    "batches of one row": lambda: go(data=labelled()[0], problem=labelled()[1], X0=np.ones((1, 4, 1)), batch_size=1),
})  # fmt: skip

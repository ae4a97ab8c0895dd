"""Data that stand in for Mediamill where it cannot be had, drawn to have its published statistics."""

import hashlib
import tomllib
from pathlib import Path
from typing import Any

import numpy as np

from cdfsg.datasets.views import Provenance, Views
from cdfsg.linalg import inv_sqrt

FACTS = Path(__file__).with_name("mediamill_facts.toml")
SEED = 2006
# Of the labels, the noise and the mixing.  The last is the one of ten whose mixing comes nearest to the shares of
# the features' variance that the first ten canonical variates have in the real data.
STREAMS = (0, 1, 6)
# Visual similarity scores lie in [0, 1]; their spread is not known to us.
MEAN, DEVIATION = 0.5, 0.2
# Features are multiples of this, so that the last digits of another machine's products round away.
GRID = 1 / 1024


def surrogate(n_samples: int) -> Views:
    """Draw rows that share Mediamill's shape and statistics, but none of its content.

    The labels are zeros and ones, the most frequent first: normal variables cut at a threshold, where
    groups of labels share a factor. The features mix the whitened labels with normal noise such that
    the *sample* has the wanted canonical correlations and correlation spectrum.

    What is drawn was measured against what is wanted (``mediamill_facts.toml``), for 43,900 rows:

    * share of rows with each label: off by at most 0.00002 (half a row); 4.373 labels per row, as in
      the facts (4.376 in all of Mediamill), and 0.4 % of the rows without any;
    * canonical correlations: off by at most 0.0002, which is the last of them, wanted to be 0;
    * eigenvalues of the features' correlation matrix: off by at most 0.0002, or 0.03 %;
    * ten largest eigenvalues of the labels' correlation matrix: 4.77, 3.09, 2.63, 2.48, 2.25, 2.18,
      2.11, 2.00, 1.92, 1.89, each within 1 %; the smallest is 0.11, whereas the real labels are
      linearly dependent;
    * features: mean 0.5 and standard deviation 0.2 by choice, as their scale is not among the facts;
      1.2 % of the values lie outside [0, 1].

    Not imitated: which label goes with which, how features are distributed beyond their
    correlations, and anything about the order of the rows.

    Parameters
    ----------
    n_samples : int
        Number of rows, some thousands at least: with few, rare labels coincide.

    Returns
    -------
    Views
        n_samples x (120 + 101) float32, scale 1, centred, named ``mediamill``, of the kind
        ``surrogate``.
    """
    facts = tomllib.loads(FACTS.read_text(encoding="utf-8"))
    labels_rng, noise_rng, mixing_rng = (
        np.random.Generator(np.random.PCG64([SEED, stream])) for stream in STREAMS
    )
    labels = _labels(n_samples, facts, labels_rng)
    features = _features(labels, facts, noise_rng, mixing_rng)
    data = np.hstack([features, labels]).astype(np.float32)
    return Views(
        name="mediamill",
        data=data,
        sizes=(features.shape[1], labels.shape[1]),
        scale=1.0,
        centred=True,
        provenance=Provenance(
            f"surrogate of Mediamill with its label frequencies, spectra and canonical correlations, seed {SEED}",
            "sha256:" + hashlib.sha256(data.tobytes()).hexdigest(),
            "surrogate",
        ),
    )


def _labels(n_samples: int, facts: dict[str, Any], rng: np.random.Generator) -> np.ndarray:
    """Zeros and ones; column ``j`` has the share ``facts["prevalence"][j]`` of ones, up to one row."""
    counts = np.maximum(np.rint(np.array(facts["prevalence"]) * n_samples), 1).astype(int)
    labels = np.zeros((n_samples, len(counts)))
    first = 0
    for size, common in facts["groups"]:
        factor = rng.standard_normal(n_samples)
        for column in range(first, first + size):
            score = np.sqrt(common) * factor + np.sqrt(1 - common) * rng.standard_normal(n_samples)
            # By rank and not by a fixed threshold, which makes the number of ones exact.
            labels[np.argpartition(score, -counts[column])[-counts[column] :], column] = 1
        first += size
    return labels


def _features(
    labels: np.ndarray, facts: dict[str, Any], noise_rng: np.random.Generator, mixing_rng: np.random.Generator
) -> np.ndarray:
    n_samples, n_labels = labels.shape
    spectrum = np.array(facts["feature_spectrum"])
    rho = np.array(facts["canonical_correlations"])
    label_variates = _whitened(labels)
    own = noise_rng.standard_normal((n_samples, len(spectrum)))
    own -= label_variates @ (label_variates.T @ own / n_samples)
    variates = _whitened(own)
    variates[:, :n_labels] *= np.sqrt(1 - rho**2)
    variates[:, :n_labels] += rho * label_variates
    # Rows of the mixing matrix: what each canonical variate adds to the features.
    mixing = _placement(len(spectrum), facts, mixing_rng).T * np.sqrt(spectrum * len(spectrum) / spectrum.sum())
    features = variates @ (mixing @ hadamard_120().T / np.sqrt(120))
    quantised: np.ndarray = np.rint((MEAN + DEVIATION * features) / GRID) * GRID
    return quantised


def _whitened(sample: np.ndarray) -> np.ndarray:
    """Centre the columns and make their covariance (over N) the identity, turning them as little as possible."""
    centred = sample - sample.mean(axis=0)
    # The symmetric root is unique, whereas the signs of other factors depend on the LAPACK at hand.
    whitened: np.ndarray = centred @ inv_sqrt(centred.T @ centred / len(centred))
    return whitened


def _placement(size: int, facts: dict[str, Any], rng: np.random.Generator) -> np.ndarray:
    """Orthogonal matrix, principal components by canonical variates: large near its diagonal.

    As in the real data, the variates of high correlation lie mostly, but not only, in the leading
    principal components.
    """
    distance = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
    weight = np.exp(-distance / facts["placement_width"])
    q, r = np.linalg.qr(weight * rng.standard_normal((size, size)))
    placement: np.ndarray = q * np.sign(np.diag(r))
    return placement


def hadamard_120() -> np.ndarray:
    """Orthogonal up to the factor 120, entries +-1, first column all ones: Paley's construction, doubled.

    Its columns serve as principal directions: as their entries are of one magnitude, all features have
    variance 1 whatever the spectrum.
    """
    q = 59  # a prime, 3 modulo 4
    squares = {(i * i) % q for i in range(1, q)}
    character = np.array([0] + [1 if i in squares else -1 for i in range(1, q)])
    skew = np.zeros((q + 1, q + 1), dtype=int)
    skew[0, 1:], skew[1:, 0] = 1, -1
    skew[1:, 1:] = character[np.subtract.outer(np.arange(q), np.arange(q)) % q]
    paley = skew + np.eye(q + 1, dtype=int)
    paley[1:] *= -1
    return np.block([[paley, paley], [paley, -paley]])

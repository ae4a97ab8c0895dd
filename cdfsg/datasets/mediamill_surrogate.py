"""A surrogate of Mediamill with its published statistics, for where it cannot be fetched."""

import tomllib
from pathlib import Path
from typing import Any

import numpy as np

from cdfsg.datasets.download import sha256
from cdfsg.datasets.views import Provenance, Views
from cdfsg.linalg import inv_sqrt

FACTS = Path(__file__).with_name("mediamill_facts.toml")
SEED = 2006
# Of the labels, the noise and the mixing; of ten mixings, the one with which the first ten canonical variates have
# shares of the features' variance nearest to those in the real data.
STREAMS = (0, 1, 6)
MEAN, DEVIATION = 0.5, 0.2  # chosen; scores lie in [0, 1]
GRID = 1 / 1024  # of the features, so that the rounding of another machine's products is lost


def surrogate(n_samples: int) -> Views:
    """Draw rows that share Mediamill's shape and statistics, but none of its content.

    The labels are normal variables cut at a threshold, where groups of labels share a factor. The features mix the
    whitened labels with normal noise such that the *sample* has the wanted canonical correlations and spectrum.

    At 43,900 rows the facts of ``mediamill_facts.toml`` hold: the shares of labels up to half a row, the canonical
    correlations up to 0.0002, the eigenvalues of the features' correlations up to 0.03 %, the ten largest ones of the
    labels' within 1 %. Not imitated: which label goes with which, and the order of the rows.
    """
    facts = tomllib.loads(FACTS.read_text(encoding="utf-8"))
    labels_rng, noise_rng, mixing_rng = (np.random.Generator(np.random.PCG64([SEED, k])) for k in STREAMS)
    labels = _labels(n_samples, facts, labels_rng)
    features = _features(labels, facts, noise_rng, mixing_rng)
    data = np.hstack([features, labels]).astype(np.float32)
    source = f"surrogate of Mediamill with its label frequencies, spectra and canonical correlations, seed {SEED}"
    provenance = Provenance(source, sha256(data.data), "surrogate")
    sizes = (features.shape[1], labels.shape[1])
    return Views("mediamill", data, sizes, 1.0, centred=True, provenance=provenance)


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
    n_features, rho = len(spectrum), np.array(facts["canonical_correlations"])
    label_variates = _whiten(labels)
    own = noise_rng.standard_normal((n_samples, n_features))
    own -= label_variates @ (label_variates.T @ own / n_samples)
    variates = _whiten(own)
    variates[:, :n_labels] *= np.sqrt(1 - rho**2)
    variates[:, :n_labels] += rho * label_variates
    # As in the real data, variates of high correlation lie mostly in the leading components.
    distance = np.abs(np.subtract.outer(np.arange(n_features), np.arange(n_features)))
    weight = np.exp(-distance / facts["placement_width"])
    q, r = np.linalg.qr(weight * mixing_rng.standard_normal((n_features, n_features)))
    mixing = (q * np.sign(np.diag(r))).T * np.sqrt(spectrum * n_features / spectrum.sum())
    features = variates @ (mixing @ hadamard_120().T / np.sqrt(120))
    return np.rint((MEAN + DEVIATION * features) / GRID) * GRID


def _whiten(sample: np.ndarray) -> np.ndarray:
    """Centre the columns and make their covariance (over N) the identity, turning them as little as possible."""
    centred = sample - sample.mean(axis=0)
    # The symmetric root is unique, whereas the signs of other factors depend on the LAPACK at hand.
    return centred @ inv_sqrt(centred.T @ centred / len(centred))


def hadamard_120() -> np.ndarray:
    """Orthogonal up to the factor 120, entries +-1, first column all ones: Paley's construction, doubled.

    As its entries are of one magnitude, all features have variance 1 for any spectrum.
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

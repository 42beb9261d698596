"""What the predictions at a site say about the accuracy there, without labels, next to samples that are known.

Two of these signals carry the estimate (`Signals.score`), with constants that `python -m
benchmarks.label_free_constants` found on other data; the others are shown next to it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from longshift.analysis import logit_share
from longshift.array_types import FloatArray, IntArray
from longshift.metrics import (
    Array,
    FeatureSummary,
    confidence_threshold,
    difference_of_confidences,
    dispersity,
    feature_distance,
    negative_entropy,
    probabilities,
    prototype_agreement,
    site_prototypes,
    summarize_features,
    thresholded_confidence,
)

NEIGHBORS = 5
USUAL = 0.99  # of the known samples are nearer to the others than this quantile: beyond it, a sample is unlike them
KEPT = 512  # features of known samples, for the nearest of them
# In logits: a constant, and the weights of agreement and dispersity.
CONSTANT, AGREEMENT, DISPERSITY = -1.30, 0.71, 0.61


@dataclass(frozen=True)
class Signals:
    """What the predictions at a site say about the accuracy there, without labels."""

    n: int
    confidence: float  # mean calibrated probability of the predicted class
    thresholded: float  # average thresholded confidence (ATC)
    difference: float  # difference of confidences (DoC)
    agreement: float  # share of predictions that the nearest class mean confirms once the site's shift is removed
    dispersity: float  # how certain predictions are, and how well they tell classes apart
    distances: Mapping[str, float]  # of the features to each training site, in units of the spread inside sites
    unlike: float  # share of samples that are unlike all known ones

    @property
    def nearest(self) -> float:
        """Distance to the nearest training site."""
        return min(self.distances.values())

    def score(self) -> float:
        """The accuracy that these signals mean on other data, in logits."""
        agreement, spread = (logit_share(value, self.n) for value in (self.agreement, self.dispersity))
        return CONSTANT + AGREEMENT * agreement + DISPERSITY * spread


@dataclass(frozen=True, eq=False)
class Reference:
    """Labeled samples of the training sites that were not trained on, as a model sees them."""

    accuracy: float
    confidence: float
    threshold: float | None  # of ATC; None: no sample was misclassified
    sites: Mapping[str, FeatureSummary]
    prototypes: FloatArray  # mean features of each class (classes, D), without the shifts of sites; NaN: no sample
    seen: FloatArray  # features (M, D)
    seen_labels: IntArray
    usual: float  # distance to the seen ones that only a hundredth of them exceeds


def make_reference(
    logits: Array, labels: IntArray, features: Array, sites: Sequence[str], temperature: float
) -> Reference:
    """Summarize labeled samples of the training sites; `sites` names the site of each."""
    shares = probabilities(logits, temperature=temperature)
    correct = shares.argmax(axis=1) == labels
    threshold = confidence_threshold(negative_entropy(shares), correct)
    rows, place = np.asarray(features, dtype=np.float64), np.asarray(sites)
    summaries = {str(site): summarize_features(rows[place == site]) for site in np.unique(place)}
    chosen = np.unique(np.linspace(0, len(rows) - 1, min(KEPT, len(rows))).astype(int))
    seen = rows[chosen]
    near = _unit(seen)
    own = np.sort(_distances(near, near), axis=1)
    usual = float(np.quantile(own[:, min(NEIGHBORS, len(seen) - 1)], USUAL))  # column 0 is the sample itself
    return Reference(
        float(correct.mean()), float(shares.max(axis=1).mean()), threshold if math.isfinite(threshold) else None,
        summaries, site_prototypes(rows, np.asarray(labels), place, shares.shape[1]), seen,
        np.asarray(labels)[chosen].astype(np.int64), usual,
    )  # fmt: skip


def read_signals(reference: Reference, logits: Array, features: Array, temperature: float) -> Signals:
    """What the predictions at a site say, for the model of the reference."""
    shares = probabilities(logits, temperature=temperature)
    confidence = float(shares.max(axis=1).mean())
    threshold = -math.inf if reference.threshold is None else reference.threshold
    own = summarize_features(features)
    return Signals(
        len(shares),
        confidence,
        thresholded_confidence(negative_entropy(shares), threshold),
        difference_of_confidences(reference.accuracy, reference.confidence, confidence),
        prototype_agreement(reference.prototypes, features, shares),
        dispersity(shares),
        {site: feature_distance(own, summary) for site, summary in reference.sites.items()},
        float((novelty(reference, features) > 1).mean()),
    )


def novelty(reference: Reference, features: Array) -> FloatArray:
    """How unlike the known samples each sample is: above 1, it is farther from them than nearly all of themselves."""
    rows, seen = _unit(np.asarray(features, dtype=np.float64)), _unit(reference.seen)
    near = min(NEIGHBORS, len(seen)) - 1
    parts = [
        np.partition(_distances(rows[start : start + 1024], seen), near, axis=1)[:, near]
        for start in range(0, len(rows), 1024)
    ]
    return np.asarray(np.concatenate(parts) / max(reference.usual, 1e-9), dtype=np.float64)


def _unit(rows: FloatArray) -> FloatArray:
    """Rows of length one: what an image shows is in the direction of its features (Sun et al., ICML 2022)."""
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12), dtype=np.float64)


def _distances(a: FloatArray, b: FloatArray) -> FloatArray:
    """Between the rows of two matrices, (N, M)."""
    squares = np.square(a).sum(axis=1)[:, None] + np.square(b).sum(axis=1) - 2 * a @ b.T
    return np.asarray(np.sqrt(np.maximum(squares, 0.0)), dtype=np.float64)

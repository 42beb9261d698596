"""Accuracy from predictions alone, without labels, by comparison with samples whose labels are known."""

from __future__ import annotations

import numpy as np

from longshift.array_types import FloatArray
from longshift.errors import UsageError
from longshift.metrics.arrays import Array, floats


def negative_entropy(probabilities: Array) -> FloatArray:
    """Compute sum_k p_k log p_k of each row: 0 for a certain prediction, -log K for a uniform one.

    >>> negative_entropy(np.array([[1.0, 0.0], [0.5, 0.5]])).round(3).tolist()
    [0.0, -0.693]
    """
    p = floats(probabilities)
    return np.asarray((p * np.log(np.where(p > 0, p, 1.0))).sum(axis=1), dtype=np.float64)


def confidence_threshold(scores: Array, correct: Array) -> float:
    """Find the threshold of average thresholded confidence (ATC; Garg et al., ICLR 2022).

    As many labeled samples score at or below it as are misclassified.

    Args:
        scores: A score per labeled sample that grows with confidence, such as `negative_entropy`.
        correct: Whether each of these samples is classified correctly.

    Returns:
        The threshold; minus infinity if every sample is correct.

    Raises:
        UsageError: If there is no sample, or if the lengths differ.

    Example:
        >>> confidence_threshold(np.array([0.9, 0.2, 0.6, 0.8]), np.array([True, False, True, True]))
        0.4
    """
    ordered, right = np.sort(floats(scores)), floats(correct).astype(bool)
    if not len(ordered) or len(ordered) != len(right):
        raise UsageError(f"expected as many scores as labels, at least one, got {len(ordered)} and {len(right)}")
    wrong = int((~right).sum())
    if wrong == 0:
        return float("-inf")
    if wrong == len(ordered):
        return float(ordered[-1])
    return float((ordered[wrong - 1] + ordered[wrong]) / 2)


def thresholded_confidence(scores: Array, threshold: float) -> float:
    """Estimate the accuracy of unlabeled samples by ATC: the share of scores above the threshold.

    >>> thresholded_confidence(np.array([0.9, 0.3, 0.7, 0.1]), 0.4)
    0.5
    """
    return float((floats(scores) > threshold).mean())


def difference_of_confidences(accuracy: float, labeled: float, unlabeled: float) -> float:
    """Estimate the accuracy of unlabeled samples: that of labeled ones less the drop of the mean confidence.

    (Guillory et al., ICCV 2021.)

    >>> round(difference_of_confidences(0.9, labeled=0.88, unlabeled=0.7), 2)
    0.72
    """
    return float(np.clip(accuracy - (labeled - unlabeled), 0.0, 1.0))


def dispersity(probabilities: Array) -> float:
    """Measure how certain predictions are and how well they tell classes apart, from 0 to 1.

    It is the nuclear norm of the matrix of predictions, divided by that of certain predictions with the same class
    frequencies. It is 1 if every prediction is certain, and small if predictions are uncertain between the same
    classes. The nuclear norm follows the accuracy under shift better than confidence does (Deng et al., ICML 2023), but
    it also falls where some classes are frequent; the division takes that out.

    >>> dispersity(np.array([[1.0, 0.0], [1.0, 0.0]])), round(dispersity(np.array([[0.5, 0.5], [0.5, 0.5]])), 3)
    (1.0, 0.5)
    """
    p = floats(probabilities)
    return float(min(np.linalg.norm(p, "nuc") / np.sqrt(p.sum(axis=0)).sum(), 1.0))

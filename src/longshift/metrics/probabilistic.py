"""Metrics of the predicted probabilities: margins, calibration, likelihood."""

from __future__ import annotations

import numpy as np

from longshift.errors import UsageError
from longshift.metrics.arrays import Array, FloatArray
from longshift.metrics.scores import score_samples

ECE_BINS = 15


def margins(logits: Array, labels: Array, source: str | None = None) -> FloatArray:
    """Compute gamma(h) = p_y - max_{k != y} p_k, (N,), in [-1, 1]; positive exactly if the prediction is correct."""
    return score_samples(logits, labels, source).margin


def negative_log_likelihood(logits: Array, labels: Array) -> float:
    """Compute the mean of -log p_y."""
    return float(score_samples(logits, labels).nll.mean())


def expected_calibration_error(logits: Array, labels: Array, bins: int = ECE_BINS) -> float:
    """Compute sum_b n_b / N |accuracy_b - mean confidence_b| over equal-width bins (lo, hi] of max p."""
    scores = score_samples(logits, labels)
    return calibration_error(scores.confidence, scores.predicted == scores.labels, bins)


def calibration_error(confidence: FloatArray, correct: Array, bins: int = ECE_BINS) -> float:
    """Compute the ECE from confidences and whether each prediction is correct."""
    if bins < 1:
        raise UsageError(f"expected at least one calibration bin, got {bins}")
    # Rounding up makes bins closed on the right; max p >= 1 / K > 0, so no value is below the first bin.
    index = np.clip(np.ceil(confidence * bins).astype(np.int64) - 1, 0, bins - 1)
    gap = np.bincount(index, weights=np.asarray(correct, dtype=np.float64) - confidence, minlength=bins)
    return float(np.abs(gap).sum() / len(confidence))

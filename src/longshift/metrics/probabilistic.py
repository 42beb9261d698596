"""Metrics of the predicted probabilities: margins, calibration, likelihood."""

from __future__ import annotations

import numpy as np

from longshift.array_types import FloatArray
from longshift.errors import UsageError
from longshift.metrics.arrays import Array
from longshift.metrics.scores import score_samples

ECE_BINS = 15


def margins(logits: Array, labels: Array, source: str | None = None) -> FloatArray:
    """Compute the margin p_y - max_{k != y} p_k of each sample.

    Args:
        logits: Logits (N, K), an array or tensor.
        labels: True classes (N,).
        source: Name of the run, for error messages.

    Returns:
        Numbers (N,) from -1 to 1, positive exactly where the prediction is correct.

    Raises:
        LongshiftError: If shapes do not match or logits are not finite.

    Example:
        >>> import numpy as np
        >>> logits = np.array([[2.0, 1.0], [0.0, 1.0], [3.0, 0.0]])
        >>> labels = np.array([0, 1, 1])
        >>> margins(logits, labels).round(2).tolist()
        [0.46, 0.46, -0.91]
    """
    return score_samples(logits, labels, source).margin


def negative_log_likelihood(logits: Array, labels: Array) -> float:
    """Compute the mean of -log p_y.

    Args:
        logits: Logits (N, K), an array or tensor.
        labels: True classes (N,).

    Returns:
        A number of at least 0, in nats.

    Raises:
        LongshiftError: If shapes do not match or logits are not finite.

    Example:
        >>> import numpy as np
        >>> logits = np.array([[2.0, 1.0], [0.0, 1.0], [3.0, 0.0]])
        >>> labels = np.array([0, 1, 1])
        >>> round(negative_log_likelihood(logits, labels), 3)
        1.225
    """
    return float(score_samples(logits, labels).nll.mean())


def expected_calibration_error(logits: Array, labels: Array, bins: int = ECE_BINS) -> float:
    """Compute the expected calibration error (ECE).

    Args:
        logits: Logits (N, K), an array or tensor.
        labels: True classes (N,).
        bins: Number of bins of equal width.

    Returns:
        Sum over bins of n_b / N times |accuracy - mean confidence|; bins are (lo, hi] of the largest probability.

    Raises:
        LongshiftError: If shapes do not match, logits are not finite or there is no bin.

    Example:
        >>> import numpy as np
        >>> logits = np.array([[2.0, 1.0], [0.0, 1.0], [3.0, 0.0]])
        >>> labels = np.array([0, 1, 1])
        >>> round(expected_calibration_error(logits, labels), 3)
        0.497
    """
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

"""Metrics of the predicted probabilities: margins, calibration, likelihood, entropy, divergence; temperature."""

from __future__ import annotations

import math

import numpy as np

from longshift.array_types import FloatArray, IntArray
from longshift.errors import UsageError
from longshift.metrics.scores import Array, finite_rows, floats, indices, log_softmax, score_samples

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


LOWEST, HIGHEST = 0.05, 20.0


def fit_temperature(logits: Array, labels: Array, source: str | None = None) -> float:
    """Find the temperature T that minimizes the mean negative log-likelihood of softmax(logits / T).

    Targets are smoothed as in Platt scaling, with (n + 1) / (n + 2) on the true class of n samples, so that a small
    set without mistakes does not lead to infinite confidence.

    Args:
        logits: Logits (N, K) of a validation set.
        labels: True classes (N,).
        source: Name of the run, for error messages.

    Returns:
        The temperature, between 0.05 and 20.

    Raises:
        LongshiftError: If shapes do not match or logits are not finite.

    Example:
        >>> overconfident = np.array([[9.0, 0.0], [9.0, 0.0], [0.0, 9.0], [0.0, 9.0]])
        >>> fit_temperature(overconfident, np.array([0, 1, 1, 0])) > 10  # only half are correct
        True
    """
    from scipy.optimize import minimize_scalar  # takes half a second to import

    rows = finite_rows(logits, "logits", source)
    n, classes = rows.shape
    truth = indices(labels, n, classes, "labels", source)
    targets = np.full((n, classes), 1 / (n + 2) / (classes - 1))
    targets[np.arange(n), truth] = (n + 1) / (n + 2)

    def nll(log_t: float) -> float:
        return -float((targets * log_softmax(rows / math.exp(log_t))).sum(axis=1).mean())

    # The negative log-likelihood is convex in 1 / T, so it has a single minimum.
    found = minimize_scalar(
        nll, bounds=(math.log(LOWEST), math.log(HIGHEST)), method="bounded", options={"xatol": 1e-6}
    )
    return float(math.exp(found.x))


def js_divergence(p: FloatArray, q: FloatArray) -> FloatArray:
    """Compute the Jensen-Shannon divergence along the last axis.

    JS(p, q) = (KL(p || m) + KL(q || m)) / 2 with m = (p + q) / 2.

    Args:
        p: Distributions (..., K).
        q: Distributions (..., K).

    Returns:
        Divergences (...) in nats, from 0 to log 2; NaN where p or q has a NaN.

    Example:
        >>> import numpy as np
        >>> float(js_divergence(np.array([1.0, 0.0]), np.array([0.0, 1.0])).round(4))
        0.6931
    """
    m = (p + q) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        left = np.where(p > 0, p * np.log(p / m), 0.0).sum(axis=-1)
        right = np.where(q > 0, q * np.log(q / m), 0.0).sum(axis=-1)
    divergence = np.maximum((left + right) / 2, 0.0)
    result: FloatArray = np.where(np.isnan(p).any(axis=-1) | np.isnan(q).any(axis=-1), np.nan, divergence)
    return result


def class_posteriors(posteriors: FloatArray, labels: IntArray) -> FloatArray:
    """Compute the mean of p(. | x) over the samples of each class.

    Args:
        posteriors: Probabilities (N, K).
        labels: True classes (N,).

    Returns:
        Means (K, K); a row of NaN for a class without samples.

    Example:
        >>> import numpy as np
        >>> class_posteriors(np.array([[0.8, 0.2], [0.6, 0.4]]), np.array([0, 0])).round(1).tolist()
        [[0.7, 0.3], [nan, nan]]
    """
    classes = posteriors.shape[1]
    sums = np.zeros((classes, classes))
    np.add.at(sums, labels, posteriors)
    counts = np.bincount(labels, minlength=classes).astype(np.float64)[:, None]
    result: FloatArray = np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)
    return result


def nan_mean(values: FloatArray) -> FloatArray:
    """Compute the mean over the first axis, ignoring NaN; NaN, without a warning, if all values are NaN."""
    good = ~np.isnan(values)
    counts = good.sum(axis=0).astype(np.float64)
    sums = np.where(good, values, 0.0).sum(axis=0)
    result: FloatArray = np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)
    return result


def negative_entropy(shares: Array) -> FloatArray:
    """Compute sum_k p_k log p_k of each row: 0 for a certain prediction, -log K for a uniform one.

    >>> negative_entropy(np.array([[1.0, 0.0], [0.5, 0.5]])).round(3).tolist()
    [0.0, -0.693]
    """
    p = floats(shares)
    return np.asarray((p * np.log(np.where(p > 0, p, 1.0))).sum(axis=1), dtype=np.float64)

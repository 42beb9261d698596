"""Mean posteriors of classes and their divergence."""

from __future__ import annotations

import numpy as np

from longshift.array_types import FloatArray, IntArray


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

"""Mean posteriors of classes and how far two of them are apart."""

from __future__ import annotations

import numpy as np

from longshift.array_types import IntArray
from longshift.metrics.arrays import FloatArray


def js_divergence(p: FloatArray, q: FloatArray) -> FloatArray:
    """JS(p, q) = (KL(p || m) + KL(q || m)) / 2 with m = (p + q) / 2, in nats, along the last axis."""
    m = (p + q) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        left = np.where(p > 0, p * np.log(p / m), 0.0).sum(axis=-1)
        right = np.where(q > 0, q * np.log(q / m), 0.0).sum(axis=-1)
    divergence = np.maximum((left + right) / 2, 0.0)
    result: FloatArray = np.where(np.isnan(p).any(axis=-1) | np.isnan(q).any(axis=-1), np.nan, divergence)
    return result


def class_posteriors(posteriors: FloatArray, labels: IntArray) -> FloatArray:
    """(K, K): row k is the mean of p(. | x) over the samples x of class k; NaN where there is none."""
    classes = posteriors.shape[1]
    sums = np.zeros((classes, classes))
    np.add.at(sums, labels, posteriors)
    counts = np.bincount(labels, minlength=classes).astype(np.float64)[:, None]
    result: FloatArray = np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)
    return result


def nan_mean(values: FloatArray) -> FloatArray:
    """Mean over the first axis of what is not NaN; NaN (without a warning) where nothing is left."""
    good = ~np.isnan(values)
    counts = good.sum(axis=0).astype(np.float64)
    sums = np.where(good, values, 0.0).sum(axis=0)
    result: FloatArray = np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)
    return result

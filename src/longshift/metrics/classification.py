"""Metrics of the predicted classes: accuracy (overall, per class, group and domain), confusion, macro-F1."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from longshift.array_types import IntArray
from longshift.errors import LongshiftError
from longshift.metrics.arrays import Array, FloatArray, indices
from longshift.metrics.scores import score_samples
from longshift.settings import SHOTS


def accuracy(logits: Array, labels: Array) -> float:
    """Compute the fraction of samples whose largest logit is that of the label."""
    scores = score_samples(logits, labels)
    return float((scores.predicted == scores.labels).mean())


def confusion_matrix(logits: Array, labels: Array) -> IntArray:
    """Count (true class, predicted class) pairs as a (K, K) matrix; rows are true classes."""
    scores = score_samples(logits, labels)
    return count_pairs(scores.labels, scores.predicted, scores.classes)


def per_class_accuracy(logits: Array, labels: Array) -> FloatArray:
    """Compute the recall of each class, (K,); NaN for a class without samples."""
    return recalls(confusion_matrix(logits, labels))


def balanced_accuracy(logits: Array, labels: Array) -> float:
    """Compute the mean of `per_class_accuracy` over the classes with samples; the accuracy, on a balanced set.

    Example:
        >>> import numpy as np
        >>> balanced_accuracy(np.array([[2.0, 1.0], [2.0, 1.0], [2.0, 1.0]]), np.array([0, 0, 1]))
        0.5
    """
    values = per_class_accuracy(logits, labels)
    return mean_class_accuracy(values[~np.isnan(values)].tolist())


def mean_class_accuracy(values: Iterable[float | None]) -> float:
    """Compute balanced accuracy from class accuracies; classes without samples (None) do not count."""
    present = [value for value in values if value is not None]
    # Rounded, so that the order of summation does not decide ties between steps.
    return round(sum(present) / len(present), 12)


def shot_accuracy(logits: Array, labels: Array, shots: Sequence[str | None]) -> dict[str, float]:
    """Compute the mean of `per_class_accuracy` over the present classes of many, medium and few; NaN if none.

    As in the published tables, each class has the same weight, whatever its number of test samples.
    `shots[k]` is the group of class k; `None` or any other word means no group.
    """
    return shot_means(per_class_accuracy(logits, labels), shots)


def per_domain_accuracy(logits: Array, labels: Array, domains: Array, count: int | None = None) -> FloatArray:
    """Compute the accuracy of each domain, (D,); NaN for a domain without samples. `count` is D, if known."""
    scores = score_samples(logits, labels)
    below = count if count is not None else int(domains.max()) + 1
    where = indices(domains, len(scores), below, "domains")
    return group_means(scores.predicted == scores.labels, where, below)


def worst_domain_accuracy(logits: Array, labels: Array, domains: Array) -> float:
    """Return the smallest `per_domain_accuracy` of the domains with samples."""
    return float(np.nanmin(per_domain_accuracy(logits, labels, domains)))


def macro_f1(logits: Array, labels: Array) -> float:
    """Compute the mean F1 over the classes that occur as label or prediction (scikit-learn's convention).

    F1_k = 2 tp_k / (2 tp_k + fp_k + fn_k).
    """
    return f1_mean(confusion_matrix(logits, labels))


def count_pairs(labels: IntArray, predicted: IntArray, classes: int) -> IntArray:
    """Compute the confusion matrix of predicted classes."""
    flat = np.bincount(labels * classes + predicted, minlength=classes * classes)
    return flat.reshape(classes, classes).astype(np.int64)


def recalls(confusion: IntArray) -> FloatArray:
    """Divide the diagonal by the row sums; NaN for an empty row."""
    rows = confusion.sum(axis=1).astype(np.float64)
    result = np.full(len(rows), np.nan)
    np.divide(confusion.diagonal(), rows, out=result, where=rows > 0)
    return result


def f1_mean(confusion: IntArray) -> float:
    """Compute macro-F1 from a confusion matrix."""
    hits = confusion.diagonal().astype(np.float64)
    seen = (confusion.sum(axis=0) + confusion.sum(axis=1)).astype(np.float64)
    return float((2 * hits[seen > 0] / seen[seen > 0]).mean())


def shot_means(per_class: FloatArray, shots: Sequence[str | None]) -> dict[str, float]:
    """Compute the mean class accuracy of many, medium and few, ignoring NaN."""
    if len(shots) != len(per_class):
        raise LongshiftError(f"expected a shot group for each of {len(per_class)} classes, got {len(shots)}")
    result: dict[str, float] = {}
    for shot in SHOTS:
        values = per_class[np.array([s == shot for s in shots], dtype=bool)]
        values = values[~np.isnan(values)]
        result[shot] = float(values.mean()) if len(values) else float("nan")
    return result


def group_means(values: Array, groups: IntArray, count: int) -> FloatArray:
    """Compute the mean of the values of each group 0..count-1; NaN for an empty group."""
    sizes = np.bincount(groups, minlength=count).astype(np.float64)
    sums = np.bincount(groups, weights=np.asarray(values, dtype=np.float64), minlength=count)
    result = np.full(count, np.nan)
    np.divide(sums, sizes, out=result, where=sizes > 0)
    return result

"""Metrics of the predicted classes: accuracy (overall, per class, group and domain), confusion, macro-F1."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from longshift.array_types import FloatArray, IntArray
from longshift.errors import LongshiftError
from longshift.metrics.scores import Array, indices, score_samples
from longshift.settings import SHOTS


def accuracy(logits: Array, labels: Array) -> float:
    """Compute the fraction of samples whose largest logit is that of the label.

    Args:
        logits: Logits (N, K), an array or tensor.
        labels: True classes (N,).

    Returns:
        A number from 0 to 1.

    Raises:
        LongshiftError: If shapes do not match or logits are not finite.

    Example:
        >>> import numpy as np
        >>> logits = np.array([[2.0, 1.0], [0.0, 1.0], [3.0, 0.0]])
        >>> labels = np.array([0, 1, 1])
        >>> round(accuracy(logits, labels), 3)
        0.667
    """
    scores = score_samples(logits, labels)
    return float((scores.predicted == scores.labels).mean())


def confusion_matrix(logits: Array, labels: Array) -> IntArray:
    """Count pairs of true and predicted classes.

    Args:
        logits: Logits (N, K), an array or tensor.
        labels: True classes (N,).

    Returns:
        Counts (K, K); rows are true classes, columns predicted ones.

    Raises:
        LongshiftError: If shapes do not match or logits are not finite.

    Example:
        >>> import numpy as np
        >>> logits = np.array([[2.0, 1.0], [0.0, 1.0], [3.0, 0.0]])
        >>> labels = np.array([0, 1, 1])
        >>> confusion_matrix(logits, labels).tolist()
        [[1, 0], [1, 1]]
    """
    scores = score_samples(logits, labels)
    return count_pairs(scores.labels, scores.predicted, scores.classes)


def per_class_accuracy(logits: Array, labels: Array) -> FloatArray:
    """Compute the recall of each class.

    Args:
        logits: Logits (N, K), an array or tensor.
        labels: True classes (N,).

    Returns:
        Numbers (K,); NaN for a class without samples.

    Raises:
        LongshiftError: If shapes do not match or logits are not finite.

    Example:
        >>> import numpy as np
        >>> logits = np.array([[2.0, 1.0], [0.0, 1.0], [3.0, 0.0]])
        >>> labels = np.array([0, 1, 1])
        >>> per_class_accuracy(logits, labels).tolist()
        [1.0, 0.5]
    """
    return recalls(confusion_matrix(logits, labels))


def balanced_accuracy(logits: Array, labels: Array) -> float:
    """Compute the mean of the class accuracies, over the classes with samples.

    Args:
        logits: Logits (N, K), an array or tensor.
        labels: True classes (N,).

    Returns:
        A number from 0 to 1; on a balanced set, the accuracy.

    Raises:
        LongshiftError: If shapes do not match or logits are not finite.

    Example:
        >>> import numpy as np
        >>> logits = np.array([[2.0, 1.0], [0.0, 1.0], [3.0, 0.0]])
        >>> labels = np.array([0, 1, 1])
        >>> balanced_accuracy(logits, labels)
        0.75
    """
    values = per_class_accuracy(logits, labels)
    return mean_class_accuracy(values[~np.isnan(values)].tolist())


def mean_class_accuracy(values: Iterable[float | None]) -> float:
    """Compute the balanced accuracy from class accuracies.

    Args:
        values: Accuracy of each class; None for a class without samples, which does not count.

    Returns:
        The mean.

    Example:
        >>> mean_class_accuracy([1.0, 0.5, None])
        0.75
    """
    present = [value for value in values if value is not None]
    # Rounded, so that the order of summation does not decide ties between steps.
    return round(sum(present) / len(present), 12)


def shot_accuracy(logits: Array, labels: Array, shots: Sequence[str | None]) -> dict[str, float]:
    """Compute the mean class accuracy of the many-, medium- and few-shot classes.

    Args:
        logits: Logits (N, K), an array or tensor.
        labels: True classes (N,).
        shots: "many", "medium", "few" or None (no group) for each class, as `shot_groups` returns them.

    Returns:
        The mean per group, NaN for a group without samples. As in the published tables, each class has the same weight.

    Raises:
        LongshiftError: If shapes do not match or logits are not finite.

    Example:
        >>> import numpy as np
        >>> logits = np.array([[2.0, 1.0], [0.0, 1.0], [3.0, 0.0]])
        >>> labels = np.array([0, 1, 1])
        >>> shot_accuracy(logits, labels, ["many", "few"])
        {'many': 1.0, 'medium': nan, 'few': 0.5}
    """
    return shot_means(per_class_accuracy(logits, labels), shots)


def per_domain_accuracy(logits: Array, labels: Array, domains: Array, count: int | None = None) -> FloatArray:
    """Compute the accuracy of each domain.

    Args:
        logits: Logits (N, K), an array or tensor.
        labels: True classes (N,).
        domains: Domains (N,) as indices.
        count: Number of domains D; by default the largest index plus 1.

    Returns:
        Numbers (D,); NaN for a domain without samples.

    Raises:
        LongshiftError: If shapes do not match or logits are not finite.

    Example:
        >>> import numpy as np
        >>> logits = np.array([[2.0, 1.0], [0.0, 1.0], [3.0, 0.0]])
        >>> labels = np.array([0, 1, 1])
        >>> per_domain_accuracy(logits, labels, np.array([0, 0, 1])).tolist()
        [1.0, 0.0]
    """
    scores = score_samples(logits, labels)
    below = count if count is not None else int(domains.max()) + 1
    where = indices(domains, len(scores), below, "domains")
    return group_means(scores.predicted == scores.labels, where, below)


def worst_domain_accuracy(logits: Array, labels: Array, domains: Array) -> float:
    """Compute the smallest accuracy of a domain.

    Args:
        logits: Logits (N, K), an array or tensor.
        labels: True classes (N,).
        domains: Domains (N,) as indices.

    Returns:
        A number from 0 to 1.

    Raises:
        LongshiftError: If shapes do not match or logits are not finite.

    Example:
        >>> import numpy as np
        >>> logits = np.array([[2.0, 1.0], [0.0, 1.0], [3.0, 0.0]])
        >>> labels = np.array([0, 1, 1])
        >>> worst_domain_accuracy(logits, labels, np.array([0, 0, 1]))
        0.0
    """
    return float(np.nanmin(per_domain_accuracy(logits, labels, domains)))


def macro_f1(logits: Array, labels: Array) -> float:
    """Compute the mean of F1_k = 2 tp_k / (2 tp_k + fp_k + fn_k) over classes.

    Args:
        logits: Logits (N, K), an array or tensor.
        labels: True classes (N,).

    Returns:
        The mean over the classes that occur as label or prediction, as in scikit-learn.

    Raises:
        LongshiftError: If shapes do not match or logits are not finite.

    Example:
        >>> import numpy as np
        >>> logits = np.array([[2.0, 1.0], [0.0, 1.0], [3.0, 0.0]])
        >>> labels = np.array([0, 1, 1])
        >>> round(macro_f1(logits, labels), 3)
        0.667
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

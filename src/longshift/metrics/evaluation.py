"""All metrics of a set of predictions in one pass."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from longshift.array_types import FloatArray, IntArray
from longshift.errors import LongshiftError
from longshift.metrics.probabilistic import calibration_error
from longshift.metrics.scores import Array, indices, score_samples
from longshift.settings import SHOTS


@dataclass(frozen=True)
class Evaluation:
    """All metrics of one set of predictions; `None` if there is nothing to measure (no such class, no domains).

    Attributes:
        n: Number of samples.
        accuracy: Share of correct predictions; with `by_cell`, the mean over cells.
        many: Mean accuracy of the many-shot classes.
        medium: Mean accuracy of the medium-shot classes.
        few: Mean accuracy of the few-shot classes.
        macro_f1: Mean F1 of the classes.
        worst_domain: Smallest accuracy of a domain.
        worst_domain_name: The domain with that accuracy.
        margin: Mean margin.
        ece: Expected calibration error.
        nll: Mean negative log-likelihood.
        per_class: Accuracy by class name.
        per_domain: Accuracy by domain name.
        confusion: Counts; row = true class, column = predicted class.
        nll_per_domain: Mean negative log-likelihood by domain name.

    Example:
        >>> import numpy as np
        >>> logits, labels = np.array([[2.0, 0.0], [1.0, 0.0], [0.0, 3.0]]), np.array([0, 1, 1])
        >>> found = evaluate_predictions(logits, labels, np.array([0, 0, 1]), ("cat", "dog"), ("north", "south"))

        >>> found.per_class, found.worst_domain_name
        ({'cat': 1.0, 'dog': 0.5}, 'north')
    """

    n: int
    accuracy: float
    many: float | None
    medium: float | None
    few: float | None
    macro_f1: float
    worst_domain: float | None
    worst_domain_name: str | None
    margin: float
    ece: float
    nll: float
    per_class: dict[str, float | None]
    per_domain: dict[str, float | None]
    confusion: tuple[tuple[int, ...], ...]
    nll_per_domain: dict[str, float | None] = field(default_factory=dict)

    @property
    def balanced_accuracy(self) -> float:
        """Mean of the class accuracies, the criterion of selection; the accuracy, on a balanced set."""
        return mean_class_accuracy(self.per_class.values())

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values; missing values are null, never NaN."""
        return {**asdict(self), "confusion": [list(row) for row in self.confusion]}


def evaluate_predictions(
    logits: Array,
    labels: Array,
    domains: Array | None,
    classes: Sequence[str],
    domain_names: Sequence[str] = (),
    shots: Sequence[str | None] | None = None,
    source: str | None = None,
    by_cell: bool = False,
) -> Evaluation:
    """Compute all metrics of a set of predictions.

    Args:
        logits: Logits (N, K).
        labels: True classes (N,).
        domains: Domains (N,) as indices into `domain_names`, or None.
        classes: Names of the K classes.
        domain_names: Names of the domains.
        shots: "many", "medium", "few" or None for each class.
        source: Name of the run, used at the start of error messages.
        by_cell: Whether `accuracy` is the mean over cells (domain and class), which then count equally, whatever their
            size.

    Returns:
        An `Evaluation`.

    Raises:
        LongshiftError: If shapes do not match, or if logits are not finite.

    Example:
        >>> import numpy as np
        >>> logits, labels = np.array([[2.0, 0.0], [1.0, 0.0], [0.0, 3.0]]), np.array([0, 1, 1])
        >>> found = evaluate_predictions(logits, labels, np.array([0, 0, 1]), ("cat", "dog"), ("north", "south"))

        >>> round(found.accuracy, 3), found.worst_domain
        (0.667, 0.5)
    """
    scores = score_samples(logits, labels, source)
    if len(classes) != scores.classes:
        owner = f"{source}: " if source else ""
        raise LongshiftError(f"{owner}expected logits of {len(classes)} classes, got {scores.classes}")
    correct = scores.predicted == scores.labels
    pairs = np.bincount(scores.labels * scores.classes + scores.predicted, minlength=scores.classes**2)
    confusion = pairs.reshape(scores.classes, scores.classes)
    hits, seen = confusion.diagonal(), confusion.sum(axis=0) + confusion.sum(axis=1)
    per_class = recalls(confusion)
    groups = shot_means(per_class, shots if shots is not None else [None] * len(classes))
    per_domain: dict[str, float | None] = {}
    nll_per_domain: dict[str, float | None] = {}
    accuracy = float(correct.mean())
    if domains is not None:
        where = indices(domains, len(scores), len(domain_names), "domains", source)
        per_domain = _named(domain_names, group_means(correct, where, len(domain_names)))
        nll_per_domain = _named(domain_names, group_means(scores.nll, where, len(domain_names)))
        if by_cell:
            cells = group_means(correct, where * len(classes) + scores.labels, len(domain_names) * len(classes))
            accuracy = round(float(np.nanmean(cells)), 12)  # as `mean_class_accuracy`
    present = {name: value for name, value in per_domain.items() if value is not None}
    worst = min(present, key=lambda name: present[name]) if present else None
    return Evaluation(
        n=len(scores),
        accuracy=accuracy,
        many=_or_none(groups["many"]),
        medium=_or_none(groups["medium"]),
        few=_or_none(groups["few"]),
        macro_f1=float((2 * hits[seen > 0] / seen[seen > 0]).mean()),
        worst_domain=present[worst] if worst is not None else None,
        worst_domain_name=worst,
        margin=float(scores.margin.mean()),
        ece=calibration_error(scores.confidence, correct),
        nll=float(scores.nll.mean()),
        per_class=_named(classes, per_class),
        per_domain=per_domain,
        confusion=tuple(tuple(int(v) for v in row) for row in confusion),
        nll_per_domain=nll_per_domain,
    )


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


def recalls(confusion: IntArray) -> FloatArray:
    """Divide the diagonal by the row sums; NaN for an empty row."""
    rows = confusion.sum(axis=1).astype(np.float64)
    result = np.full(len(rows), np.nan)
    np.divide(confusion.diagonal(), rows, out=result, where=rows > 0)
    return result


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


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def _named(names: Sequence[str], values: FloatArray) -> dict[str, float | None]:
    return {name: _or_none(float(value)) for name, value in zip(names, values, strict=True)}

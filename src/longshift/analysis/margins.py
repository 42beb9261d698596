"""Summary of the margins gamma(h) = p_y - max_{k != y} p_k: average and Pr[gamma <= delta], also per class."""

from __future__ import annotations

from dataclasses import dataclass

from longshift.array_types import FloatArray
from longshift.metrics import Array, group_means, integers, margins


@dataclass(frozen=True, eq=False)
class MarginSummary:
    """Margins of one set of samples; values per class are NaN for a class without samples."""

    average: float
    small: float  # Pr[gamma <= delta]
    delta: float
    per_class: FloatArray  # (K,) average margin
    small_per_class: FloatArray  # (K,)


def margin_summary(logits: Array, labels: Array, delta: float = 0.0, source: str | None = None) -> MarginSummary:
    """Summarize the margins p_y - max_{k != y} p_k of a set of predictions.

    Args:
        logits: Logits (N, K).
        labels: True classes (N,).
        delta: Threshold.
        source: Name of the run, for error messages.

    Returns:
        The average margin and the share of margins of at most `delta`, over all samples and per class.

    Example:
        >>> import numpy as np
        >>> found = margin_summary(np.log([[0.8, 0.2], [0.6, 0.4]]), np.array([0, 1]))
        >>> round(found.average, 3)
        0.2
    """
    gamma = margins(logits, labels, source)
    y, classes = integers(labels), int(logits.shape[1])
    return MarginSummary(
        average=float(gamma.mean()),
        small=float((gamma <= delta).mean()),
        delta=delta,
        per_class=group_means(gamma, y, classes),
        small_per_class=group_means(gamma <= delta, y, classes),
    )

"""Margins gamma(h) = p_y - max_{k != y} p_k, summed up: average, Pr[gamma <= delta], per class."""

from __future__ import annotations

from dataclasses import dataclass

from longshift.metrics import Array, FloatArray, group_means, integers, margins


@dataclass(frozen=True, eq=False)
class MarginSummary:
    """Margins of one set of samples; per-class values are NaN where a class has no sample."""

    average: float
    small: float  # Pr[gamma <= delta]
    delta: float
    per_class: FloatArray  # (K,) average margin
    small_per_class: FloatArray  # (K,)


def margin_summary(logits: Array, labels: Array, delta: float = 0.0, source: str | None = None) -> MarginSummary:
    """Average margin and share of samples with a margin of at most `delta`, over all samples and per class."""
    gamma = margins(logits, labels, source)
    y, classes = integers(labels), int(logits.shape[1])
    return MarginSummary(
        average=float(gamma.mean()),
        small=float((gamma <= delta).mean()),
        delta=delta,
        per_class=group_means(gamma, y, classes),
        small_per_class=group_means(gamma <= delta, y, classes),
    )

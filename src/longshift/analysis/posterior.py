"""Posterior discrepancy: how differently a model predicts one class in two domains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from longshift.analysis.domains import DomainOutputs, check_domains
from longshift.metrics import probabilities
from longshift.metrics.arrays import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class PosteriorDiscrepancy:
    """Jensen-Shannon divergences (nats, 0 to log 2) of class-mean posteriors; NaN where a class is absent.

    `average` is the mean over the classes that can be measured; it is NaN if none can.
    """

    per_source: FloatArray  # (D, K) each source against the target
    per_class: FloatArray  # (K,) mean over the sources that hold the class
    average: float  # mean of `per_class`
    between_sources_per_class: FloatArray  # (K,) mean over pairs of sources
    between_sources: float
    absent: tuple[int, ...]  # classes that cannot be measured: not in the target, or in no source


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


def posterior_discrepancy(sources: Sequence[DomainOutputs], target: DomainOutputs) -> PosteriorDiscrepancy:
    """PD_k = mean_d JS(mean_{x in (d, k)} p(. | x), mean_{x in (T, k)} p(. | x)), averaged over the classes k.

    Every source domain counts the same whatever its size, as does every class.
    """
    check_domains(sources, target)
    rows = [class_posteriors(probabilities(d.logits, d.name), d.labels) for d in sources]
    goal = class_posteriors(probabilities(target.logits, target.name), target.labels)
    per_source = np.stack([js_divergence(row, goal) for row in rows])
    per_class = nan_mean(per_source)
    pairs = [js_divergence(a, b) for a, b in combinations(rows, 2)]
    between = nan_mean(np.stack(pairs)) if pairs else np.full(target.classes, np.nan)
    return PosteriorDiscrepancy(
        per_source=per_source,
        per_class=per_class,
        average=float(nan_mean(per_class)),
        between_sources_per_class=between,
        between_sources=float(nan_mean(between)),
        absent=tuple(int(k) for k in np.flatnonzero(np.isnan(per_class))),
    )


def nan_mean(values: FloatArray) -> FloatArray:
    """Mean over the first axis of what is not NaN; NaN (without a warning) where nothing is left."""
    good = ~np.isnan(values)
    counts = good.sum(axis=0).astype(np.float64)
    sums = np.where(good, values, 0.0).sum(axis=0)
    result: FloatArray = np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)
    return result

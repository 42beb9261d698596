"""How far apart domains are for a model: posteriors of classes, embeddings (Wasserstein), and margins."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, TypeAlias

import numpy as np

from longshift.analysis.domains import DomainOutputs, check_domains
from longshift.array_types import FloatArray, IntArray
from longshift.errors import LongshiftError
from longshift.metrics import (
    Array,
    class_posteriors,
    group_means,
    integers,
    js_divergence,
    margins,
    nan_mean,
    probabilities,
)


@dataclass(frozen=True, eq=False)
class PosteriorDiscrepancy:
    """Jensen-Shannon divergences (nats, 0 to log 2) of class-mean posteriors; NaN for an absent class.

    `average` is the mean over the measurable classes, or NaN if there are none.
    """

    per_class: FloatArray  # (K,) mean over the sources that have the class
    average: float  # mean of `per_class`
    between_sources: float  # the same for pairs of sources


def posterior_discrepancy(sources: Sequence[DomainOutputs], target: DomainOutputs) -> PosteriorDiscrepancy:
    """Compute how far the class-mean posteriors of the sources are from those of the target.

    PD_k = mean_d JS(mean_{x in (d, k)} p(. | x), mean_{x in (T, k)} p(. | x)). All source domains and all classes have
    the same weight, whatever their size.

    Args:
        sources: Outputs on the source domains.
        target: Outputs on the target.

    Returns:
        The discrepancy per class and its mean, and the same between pairs of sources.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> def outputs(name, shift):
        ...     x, y = rng.normal(shift, 1, (60, 3)), np.arange(60) % 3
        ...     return DomainOutputs(name, x + 3 * np.eye(3)[y], y, x)

        >>> found = posterior_discrepancy([outputs("a", 0), outputs("b", 1)], outputs("c", 2))
        >>> bool(0 <= found.average <= np.log(2))
        True
    """
    check_domains(sources, target)
    rows = [class_posteriors(probabilities(d.logits, d.name), d.labels) for d in sources]
    goal = class_posteriors(probabilities(target.logits, target.name), target.labels)
    per_class = nan_mean(np.stack([js_divergence(row, goal) for row in rows]))
    pairs = [js_divergence(a, b) for a, b in combinations(rows, 2)]
    between = nan_mean(nan_mean(np.stack(pairs))) if pairs else np.nan
    return PosteriorDiscrepancy(per_class, float(nan_mean(per_class)), float(between))


Kind: TypeAlias = Literal["exact", "sliced"]

EXACT_LIMIT = 2_000  # samples; beyond, exact optimal transport takes too long


@dataclass(frozen=True, eq=False)
class PriorDiscrepancy:
    """2-Wasserstein distances between the embeddings of domains, all of the same kind."""

    names: tuple[str, ...]  # sources, then the target
    distances: FloatArray  # (D + 1, D + 1), symmetric, zero diagonal
    kind: Kind
    source_source: float | None  # mean over pairs of sources; None with one source
    source_target: float  # mean over sources


def wasserstein(
    x: FloatArray, y: FloatArray, kind: Kind | None = None, *, limit: int = EXACT_LIMIT, projections: int = 500,
    seed: int | Sequence[int] = 0,
) -> float:  # fmt: skip
    """Compute W_2(x, y) = (min_P sum_ij P_ij |x_i - y_j|^2)^(1/2) over couplings P of points (N, M) and (N', M).

    Never compare one kind with the other: in M dimensions the sliced distance is smaller than W_2 (|s| / sqrt(M) for a
    pure shift s).

    Args:
        x: Points (N, M).
        y: Points (N', M).
        kind: "exact" is the optimum. "sliced" is the root of the mean over random directions of the squared distance
            of the projections. By default exact if both sets are within `limit`, else sliced.
        limit: Largest number of points for exact distances, which take long beyond.
        projections: Number of directions.
        seed: Seed of the directions.

    Returns:
        The distance.

    Raises:
        LongshiftError: A set is empty, or the points have different lengths.

    Example:
        >>> import numpy as np
        >>> points = np.random.default_rng(0).normal(size=(50, 2))
        >>> round(wasserstein(points, points + [3.0, 4.0]), 6)
        5.0
    """
    import ot  # takes half a second to import

    if x.ndim != 2 or y.ndim != 2 or x.shape[1] != y.shape[1] or not len(x) or not len(y):
        raise LongshiftError(f"expected two non-empty sets of points of one dimension, found {x.shape} and {y.shape}")
    if (kind or ("sliced" if max(len(x), len(y)) > limit else "exact")) == "exact":
        weights = (np.full(len(x), 1 / len(x)), np.full(len(y), 1 / len(y)))
        square = float(ot.emd2(*weights, ot.dist(x, y, metric="sqeuclidean"), numItermax=10_000_000))
    else:
        directions = np.random.default_rng(seed).standard_normal((x.shape[1], projections))
        directions /= np.linalg.norm(directions, axis=0, keepdims=True)
        square = float(np.mean(ot.wasserstein_1d(x @ directions, y @ directions, p=2)))
    return math.sqrt(max(square, 0.0))


def prior_discrepancy(
    sources: Sequence[DomainOutputs],
    target: DomainOutputs,
    *,
    limit: int = EXACT_LIMIT,
    projections: int = 500,
    seed: int = 0,
) -> PriorDiscrepancy:
    """Compute distances between the embeddings of domains.

    Args:
        sources: Outputs on the source domains, with embeddings.
        target: Outputs on the target, with embeddings.
        limit: All pairs are exact if every domain has at most this many samples, else sliced.
        projections: Number of directions of sliced distances.
        seed: Seed of the directions.

    Returns:
        The mean W_2 over pairs of sources, the mean W_2 of sources to the target, and all distances.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> def outputs(name, shift):
        ...     x, y = rng.normal(shift, 1, (60, 3)), np.arange(60) % 3
        ...     return DomainOutputs(name, x + 3 * np.eye(3)[y], y, x)

        >>> found = prior_discrepancy([outputs("a", 0), outputs("b", 1)], outputs("c", 2))
        >>> found.source_target > found.source_source
        True
    """
    check_domains(sources, target)
    domains = (*sources, target)
    kind: Kind = "sliced" if max(len(d) for d in domains) > limit else "exact"
    n = len(domains)
    values = np.zeros((n, n))
    for i, j in combinations(range(n), 2):
        points = domains[i].features(), domains[j].features()
        values[i, j] = values[j, i] = wasserstein(*points, kind, projections=projections, seed=(seed, i, j))
    inner = [values[pair] for pair in combinations(range(n - 1), 2)]
    between = float(np.mean(inner)) if inner else None
    return PriorDiscrepancy(tuple(d.name for d in domains), values, kind, between, float(values[:-1, -1].mean()))


def centroid_distances(embeddings: FloatArray, labels: IntArray, classes: int) -> FloatArray:
    """Compute |mean of class k - mean of the domain| for each class, (K,); NaN for a class without samples."""
    centroids = np.stack([group_means(column, labels, classes) for column in embeddings.T], axis=1)
    result: FloatArray = np.linalg.norm(centroids - embeddings.mean(axis=0), axis=1)
    return result


@dataclass(frozen=True, eq=False)
class MarginSummary:
    """Margins of one set of samples; NaN for a class without samples."""

    average: float
    small: float  # Pr[gamma <= delta]
    per_class: FloatArray  # (K,) average margin


def margin_summary(logits: Array, labels: Array, delta: float = 0.0, source: str | None = None) -> MarginSummary:
    """Summarize the margins p_y - max_{k != y} p_k of a set of predictions.

    Args:
        logits: Logits (N, K).
        labels: True classes (N,).
        delta: Threshold.
        source: Name of the run, for error messages.

    Returns:
        The average margin and the share of margins of at most `delta`, and the average of each class.

    Example:
        >>> import numpy as np
        >>> found = margin_summary(np.log([[0.8, 0.2], [0.6, 0.4]]), np.array([0, 1]))
        >>> round(found.average, 3)
        0.2
    """
    gamma = margins(logits, labels, source)
    per_class = group_means(gamma, integers(labels), int(logits.shape[1]))
    return MarginSummary(float(gamma.mean()), float((gamma <= delta).mean()), per_class)

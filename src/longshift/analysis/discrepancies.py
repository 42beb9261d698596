"""How far apart domains are for a model: posteriors of classes, embeddings (Wasserstein), and margins."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, TypeAlias

import numpy as np

from longshift.analysis.domains import DomainOutputs, Seed, check_domains, subsample
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

    per_source: FloatArray  # (D, K) each source against the target
    per_class: FloatArray  # (K,) mean over the sources that have the class
    average: float  # mean of `per_class`
    between_sources_per_class: FloatArray  # (K,) mean over pairs of sources
    between_sources: float
    absent: tuple[int, ...]  # classes that cannot be measured: not in the target, or in no source


def posterior_discrepancy(sources: Sequence[DomainOutputs], target: DomainOutputs) -> PosteriorDiscrepancy:
    """Compute how far the class-mean posteriors of the sources are from those of the target.

    PD_k = mean_d JS(mean_{x in (d, k)} p(. | x), mean_{x in (T, k)} p(. | x)). All source domains and all classes have
    the
    same weight, whatever their size.

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


Kind: TypeAlias = Literal["exact", "sliced"]

# Above this number of samples, exact optimal transport between whole sets takes too long.
EXACT_LIMIT = 2_000


@dataclass(frozen=True)
class Distance:
    """A 2-Wasserstein distance, the way it was computed, and its standard error.

    `error` is 0 if whole sets were compared exactly; otherwise it is over subsamples or projections.
    """

    value: float
    error: float
    kind: Kind


@dataclass(frozen=True, eq=False)
class PriorDiscrepancy:
    """Distances between the embeddings of domains, all of the same kind."""

    names: tuple[str, ...]  # sources, then the target
    distances: FloatArray  # (D + 1, D + 1), symmetric, zero diagonal
    errors: FloatArray
    kind: Kind
    source_source: float | None  # mean over pairs of sources; None with one source
    source_source_error: float | None
    source_target: float  # mean over sources
    source_target_error: float


def wasserstein(
    x: FloatArray,
    y: FloatArray,
    kind: Kind | None = None,
    *,
    limit: int = EXACT_LIMIT,
    repeats: int = 5,
    projections: int = 500,
    seed: Seed = 0,
) -> Distance:
    """Compute W_2(x, y) = (min_P sum_ij P_ij |x_i - y_j|^2)^(1/2) over couplings P of points (N, M) and (N', M).

    Never compare one kind with the other: in M dimensions the sliced distance is smaller than W_2 (|s| / sqrt(M) for a
    pure shift s).

    Args:
        x: Points (N, M).
        y: Points (N', M).
        kind: "exact" is the optimum. "sliced" is the root of the mean over random directions of the squared distance
            of the projections, on all points. By default exact if both sets are within `limit`, else sliced.
        limit: Exact distances of larger sets use random subsamples of this size, which are slightly too large.
        repeats: Number of subsamples.
        projections: Number of directions.
        seed: Seed of subsamples and directions.

    Returns:
        The distance with its standard error.

    Raises:
        LongshiftError: A set is empty, or the points have different lengths.

    Example:
        >>> import numpy as np
        >>> points = np.random.default_rng(0).normal(size=(50, 2))
        >>> round(wasserstein(points, points + [3.0, 4.0]).value, 6)
        5.0
    """
    if x.ndim != 2 or y.ndim != 2 or x.shape[1] != y.shape[1] or not len(x) or not len(y):
        raise LongshiftError(f"expected two non-empty sets of points of one dimension, found {x.shape} and {y.shape}")
    large = max(len(x), len(y)) > limit
    rng = np.random.default_rng(seed)
    if (kind or ("sliced" if large else "exact")) == "sliced":
        return _sliced(x, y, projections, rng)
    if not large:
        return Distance(_exact(x, y), 0.0, "exact")
    values = [
        _exact(x[subsample(len(x), limit, rng)], y[subsample(len(y), limit, rng)]) for _ in range(max(repeats, 2))
    ]
    return Distance(float(np.mean(values)), float(np.std(values, ddof=1) / math.sqrt(len(values))), "exact")


def _exact(x: FloatArray, y: FloatArray) -> float:
    import ot  # takes half a second to import

    cost = ot.dist(x, y, metric="sqeuclidean")
    weights = (np.full(len(x), 1 / len(x)), np.full(len(y), 1 / len(y)))
    return math.sqrt(max(float(ot.emd2(*weights, cost, numItermax=10_000_000)), 0.0))


def _sliced(x: FloatArray, y: FloatArray, projections: int, rng: np.random.Generator) -> Distance:
    directions = rng.standard_normal((x.shape[1], projections))
    directions /= np.linalg.norm(directions, axis=0, keepdims=True)
    import ot  # takes half a second to import

    squares = np.asarray(ot.wasserstein_1d(x @ directions, y @ directions, p=2), dtype=np.float64)
    mean = max(float(squares.mean()), 0.0)
    value = math.sqrt(mean)
    # Delta method: the error of a root is the error of the mean divided by twice the root.
    error = float(squares.std(ddof=1) / math.sqrt(projections)) / (2 * value) if value > 0 else 0.0
    return Distance(value, error, "sliced")


def prior_discrepancy(
    sources: Sequence[DomainOutputs],
    target: DomainOutputs,
    kind: Kind | None = None,
    *,
    limit: int = EXACT_LIMIT,
    projections: int = 500,
    seed: int = 0,
) -> PriorDiscrepancy:
    """Compute distances between the embeddings of domains.

    Args:
        sources: Outputs on the source domains, with embeddings.
        target: Outputs on the target, with embeddings.
        kind: "exact" or "sliced"; by default all pairs are exact if every domain has at most `limit` samples, else
            sliced.
        limit: Largest number of samples for exact distances.
        projections: Number of directions of sliced distances.
        seed: Seed of subsamples and directions.

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
    chosen: Kind = kind or ("sliced" if max(len(d) for d in domains) > limit else "exact")
    n = len(domains)
    values, errors = np.zeros((n, n)), np.zeros((n, n))
    for i, j in combinations(range(n), 2):
        x, y = domains[i].features(), domains[j].features()
        found = wasserstein(x, y, chosen, limit=limit, projections=projections, seed=(seed, i, j))
        values[i, j] = values[j, i] = found.value
        errors[i, j] = errors[j, i] = found.error
    inner = list(combinations(range(n - 1), 2))
    return PriorDiscrepancy(
        names=tuple(d.name for d in domains),
        distances=values,
        errors=errors,
        kind=chosen,
        source_source=float(np.mean([values[p] for p in inner])) if inner else None,
        source_source_error=_mean_error([errors[p] for p in inner]) if inner else None,
        source_target=float(values[:-1, -1].mean()),
        source_target_error=_mean_error(list(errors[:-1, -1])),
    )


def _mean_error(errors: Sequence[float]) -> float:
    return math.sqrt(sum(e * e for e in errors)) / len(errors)


def centroid_distances(embeddings: FloatArray, labels: IntArray, classes: int) -> FloatArray:
    """Compute |mean of class k - mean of the domain| for each class, (K,); NaN for a class without samples."""
    centroids = np.stack([group_means(column, labels, classes) for column in embeddings.T], axis=1)
    result: FloatArray = np.linalg.norm(centroids - embeddings.mean(axis=0), axis=1)
    return result


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

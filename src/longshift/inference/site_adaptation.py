"""Adapt a model to a new site without labels: one offset per class, which is added to the logits.

A site moves all features in about the same way, and that adds a constant to the logits of each class. So the mean
logits of a site differ from those of the training sites for two reasons: this offset, and other class frequencies (the
mix). Both are estimated together, by EM for a mixture of normal distributions with one covariance and known centers:

    likely = softmax(log mix + log density of logits + offset around the centers of the classes)
    mix = mean likely + FLOOR, normalized
    offset = STRENGTH * n / (n + PRIOR) * (mix @ centers - mean logits)

Because the offset is smaller than what would explain the mean, an unusual mix is found where the spread of the logits
shows one. The mix stays out of the predictions themselves: predictions of an unusual class are not made more frequent.
Nothing is adapted where that did not help at held-out sites (`choose_adaptation`), and the offset vanishes as the mix
leaves the range of the training sites.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.special import softmax

from longshift.array_types import FloatArray, IntArray
from longshift.errors import UsageError, unknown_name
from longshift.metrics import Array

PRIOR = 10.0  # samples with which half of the offset is used
FEWEST = 20  # samples of a site; with fewer, nothing is estimated or adapted
STRENGTH, FLOOR = 0.75, 0.05
OUTSIDE = 3.0  # nothing is adapted if a third of the mix lies outside the shares at training sites
STEPS, TOLERANCE = 100, 1e-4

SIZES = (20, 50, 200, 1000)  # samples of a held-out site
DOMINANT, ENOUGH = 0.8, 5  # share of one class, each class with so many samples in turn
DRAWS = 3
WORST = -0.01  # accuracy lost at most at a held-out site with any kind of mix

Adapt = Literal["auto", "on", "off"]


@dataclass(frozen=True, eq=False)
class SiteAdaptation:
    """What is kept with a model to adapt it.

    Attributes:
        class_logits: Mean calibrated logits of the samples of each class at an average training site, (classes,
            classes); NaN for a class without samples.
        precision: Inverse covariance of the logits inside classes and sites, (classes, classes).
        shares: Largest share of each class at any training site.
        helps: Whether adapting helped at the held-out sites.
        gain: Accuracy gained there, on average.
    """

    class_logits: FloatArray
    precision: FloatArray
    shares: FloatArray
    helps: bool = False
    gain: float = 0.0


@dataclass(frozen=True, eq=False)
class SiteOffset:
    """What is added to the calibrated logits of one site."""

    values: FloatArray  # (classes,)
    mix: FloatArray  # share of each class, as estimated or given
    n: int  # samples it was estimated from
    strength: float  # from 0 to 1: how much of the estimated offset is used
    given: bool = False  # the mix is known, so the gain at the held-out sites does not apply


def class_means(features: FloatArray, labels: IntArray, sites: Array, classes: int) -> FloatArray:
    """Compute the mean features of each class at an average site, (classes, D).

    Features are explained by a sum of a class and a site (least squares), so that classes which are frequent at a site
    do not shift the others there. NaN for a class without samples.

    >>> class_means(np.array([[1.0], [3.0], [11.0], [13.0]]), np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1]), 2)
    array([[6.],
           [8.]])
    """
    there = np.unique(labels)
    _, parts = _class_and_site(features, labels, sites)
    found = np.full((classes, parts.shape[1]), np.nan)
    found[there] = parts[: len(there)] + parts[len(there) :].mean(axis=0)
    return found


def class_precision(logits: FloatArray, labels: IntArray, sites: Array) -> FloatArray:
    """Compute the inverse covariance of logits inside classes and sites, where each class weighs the same.

    What is the same for all classes plays no part. With few samples, the variances are made more equal.
    """
    n, classes = logits.shape
    logits = logits - logits.mean(axis=1, keepdims=True)
    rows, parts = _class_and_site(logits, labels, sites)
    rest, counts = logits - rows @ parts, np.bincount(labels)
    covariance = (rest / counts[labels][:, None]).T @ rest / (counts > 0).sum()
    covariance *= n / max(n - rows.shape[1] + 1, 1)
    equal = max(np.trace(covariance), 1.0) / max(classes - 1, 1) * (np.eye(classes) - 1 / classes)
    shrunk = (n * covariance + classes * equal) / (n + classes)
    return np.asarray(np.linalg.pinv(shrunk, rcond=1e-10, hermitian=True), dtype=np.float64)


def _class_and_site(features: FloatArray, labels: IntArray, sites: Array) -> tuple[FloatArray, FloatArray]:
    """Explain features by a sum of a class and a site: indicators (N, classes + sites), and what each of them adds."""
    kinds, where = (np.unique(np.asarray(part), return_inverse=True)[1] for part in (labels, sites))
    rows = np.hstack([np.eye(kinds.max() + 1)[kinds], np.eye(where.max() + 1)[where]])
    return rows, np.asarray(np.linalg.pinv(rows.T @ rows) @ (rows.T @ features), dtype=np.float64)


def largest_shares(counts: Sequence[Sequence[int]] | IntArray) -> FloatArray:
    """Compute the largest share of each class at any site from samples (sites, classes)."""
    table = np.asarray(counts, dtype=np.float64)
    return np.asarray((table / np.maximum(table.sum(axis=1, keepdims=True), 1)).max(axis=0), dtype=np.float64)


def site_offset(learned: SiteAdaptation, logits: FloatArray, mix: FloatArray | None = None) -> SiteOffset:
    """Estimate the offset of a site.

    Args:
        learned: What the fit knows.
        logits: Calibrated logits of samples of the site, (N, classes).
        mix: Share of each class, if it is known. It makes the estimate much better, and all of the offset is used.

    Returns:
        The offset, the mix and the strength: 0 if the fit does not adapt, and less than 1 for an unusual mix.
    """
    known = ~np.isnan(learned.class_logits).any(axis=1)
    centers, mean = learned.class_logits[known], logits.mean(axis=0)
    weight, enough = len(logits) / (len(logits) + PRIOR), len(logits) >= FEWEST
    if mix is not None:
        part = mix[known] / max(float(mix[known].sum()), 1e-12)
        offset = weight * (part @ centers - mean)
        return SiteOffset(offset * enough, mix, len(logits), float(enough), given=True)
    slopes = centers @ learned.precision
    densities = logits @ slopes.T - (slopes * centers).sum(axis=1) / 2
    offset, part = np.zeros(logits.shape[1]), np.full(len(centers), 1 / len(centers))
    for _ in range(STEPS):
        part = softmax(densities + slopes @ offset + np.log(part), axis=1).mean(axis=0) + FLOOR
        part /= part.sum()
        step = STRENGTH * weight * (part @ centers - mean) - offset
        offset = offset + step / 2  # whole steps may go back and forth
        if np.abs(step).max() < TOLERANCE:
            break
    found = np.zeros(logits.shape[1])
    found[known] = part
    outside = float(np.maximum(found - learned.shares, 0).sum())
    strength = max(1 - OUTSIDE * outside, 0.0) * (learned.helps and enough)
    return SiteOffset(strength * offset, found, len(logits), strength)


def class_mix(classes: Sequence[str], given: Mapping[str, float]) -> FloatArray:
    """Shares of all classes from those of some; the others share equally what is left.

    >>> class_mix(("a", "b", "c"), {"b": 0.5})
    array([0.25, 0.5 , 0.25])
    """
    for name, share in given.items():
        if name not in classes:
            raise UsageError(unknown_name("class", name, classes))
        if not 0 <= share <= 1:
            raise UsageError(f"expected the share of class {name} between 0 and 1, got {share}")
    total, others = sum(given.values()), len(classes) - len(given)
    if total > 1 + 1e-3 or (not others and total < 1 - 1e-3):
        raise UsageError(f"expected shares of classes that sum to 1, got {total:g}")
    found = np.array([given.get(name, (1 - total) / max(others, 1)) for name in classes])
    return np.asarray(np.maximum(found, 0) / np.maximum(found, 0).sum(), dtype=np.float64)


# Whether to adapt, from held-out sites


@dataclass(frozen=True, eq=False)
class HeldOutLogits:
    """Calibrated logits and labels at a held-out site, and what the model of the other sites knows."""

    learned: SiteAdaptation
    logits: FloatArray
    labels: IntArray


def choose_adaptation(sites: Sequence[HeldOutLogits], learned: SiteAdaptation) -> SiteAdaptation:
    """Decide whether to adapt, by what it gains at held-out sites with different sizes and mixes.

    Args:
        sites: The held-out sites.
        learned: What the final model knows.

    Returns:
        The same; `helps` if accuracy and accuracy over classes rise on average, and no site with any kind of mix loses
        more than `WORST`.
    """
    if len(sites) < 2:
        return learned
    gains = np.stack([site_gains(site) for site in sites])  # site, kind of mix, measure
    helps = bool(gains.mean() > 0 and gains[..., 0].min() >= WORST)
    return replace(learned, helps=helps, gain=float(gains[:, 0, 0].mean()) if helps else 0.0)


def site_gains(site: HeldOutLogits) -> FloatArray:
    """Gains for each kind of mix and measure, (3, 2).

    The kinds are the mix of the site, a balanced one, and mixes with one dominant class; the measures accuracy and
    accuracy over classes.
    """
    rng, learned = np.random.default_rng(0), replace(site.learned, helps=True)
    found = []
    for mixes in _mixes(site.labels):
        draws = [
            rng.choice(len(site.labels), size, p=weights) for weights in mixes for size in SIZES for _ in range(DRAWS)
        ]
        found.append(np.mean([_gains(learned, site.logits[rows], site.labels[rows]) for rows in draws], axis=0))
    return np.asarray(found, dtype=np.float64)


def _mixes(labels: IntArray) -> Iterator[list[FloatArray]]:
    """Probabilities of the samples for each kind of mix, one or more of each kind."""
    there, kinds, counts = np.unique(labels, return_inverse=True, return_counts=True)
    yield [np.full(len(labels), 1 / len(labels))]
    equal = 1 / (len(there) * counts)[kinds]
    yield [equal]
    most = np.flatnonzero(counts >= min(ENOUGH, counts.max()))
    others = max(len(there) - 1, 1)
    shares = [np.where(np.arange(len(there)) == k, DOMINANT, (1 - DOMINANT) / others) for k in most]
    dominant = [(share / counts)[kinds] for share in shares]
    yield [weights / weights.sum() for weights in dominant]


def _gains(learned: SiteAdaptation, logits: FloatArray, labels: IntArray) -> tuple[float, float]:
    after = (logits + site_offset(learned, logits).values).argmax(axis=1) == labels
    change = after.astype(np.float64) - (logits.argmax(axis=1) == labels)
    return float(change.mean()), float(np.mean([change[labels == k].mean() for k in np.unique(labels)]))

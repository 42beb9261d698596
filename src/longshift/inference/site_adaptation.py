"""Adapt a model to a new site without labels: one offset per class, which is added to the logits.

A site moves all features in about the same way, and that adds a constant to the logits of each class. So the mean
logits of a site differ from those of the training sites for two reasons: this offset, and other class frequencies (the
mix). Both are estimated together:

    mix = mean softmax((logits + offset) / softness)
    offset = n / (n + PRIOR) * (mix @ class_logits - mean logits)

The mix stays out of the predictions themselves. Feeding it back, inverting the confusion of held-out sites (Lipton et
al., ICML 2018) and EM over class centers were tried and are less safe. Where classes are hard to tell apart, an unusual
mix and an offset look the same. So the offset is multiplied by a strength, which `fit` chooses at its held-out sites,
with the softness (`choose_adaptation`), and it vanishes as the mix leaves the range of the training sites.
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
OUTSIDE = 4.0  # nothing is adapted if a fourth of the mix lies outside the shares at training sites
STEPS, TOLERANCE = 200, 1e-6

STRENGTHS, SOFTNESS = (0.25, 0.5, 0.75, 1.0), (1.0, 2.0, 4.0)
SIZES = (20, 50, 200, 1000)  # samples of a site, in the choice of the strength
DOMINANT, ENOUGH = 0.8, 5  # share of one class, each class with so many samples in turn
DRAWS = 3
LEAST_GAIN = 0.005  # mean of accuracy and accuracy over classes: below it, nothing is adapted
WORST = -0.01  # accuracy lost at most at a held-out site with any kind of mix

Adapt = Literal["auto", "on", "off"]


@dataclass(frozen=True, eq=False)
class SiteAdaptation:
    """What is kept with a model to adapt it.

    Attributes:
        class_logits: Mean calibrated logits of the samples of each class at an average training site, (classes,
            classes); NaN for a class without samples.
        shares: Largest share of each class at any training site.
        strength: From 0 (never) to 1.
        softness: The larger, the less the estimated mix follows the predictions.
        gain: Accuracy gained at held-out sites, on average.
    """

    class_logits: FloatArray
    shares: FloatArray
    strength: float = 0.0
    softness: float = 1.0
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
    there, kinds = np.unique(labels, return_inverse=True)
    places, where = np.unique(np.asarray(sites), return_inverse=True)
    rows = np.hstack([np.eye(len(there))[kinds], np.eye(len(places))[where]])
    parts = np.linalg.pinv(rows.T @ rows) @ (rows.T @ features)
    found = np.full((classes, parts.shape[1]), np.nan)
    found[there] = parts[: len(there)] + parts[len(there) :].mean(axis=0)
    return found


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
        The offset, the mix and the strength, which is that of the fit or less.
    """
    known = ~np.isnan(learned.class_logits).any(axis=1)
    centers, mean = learned.class_logits[known], logits.mean(axis=0)
    weight, offset = len(logits) / (len(logits) + PRIOR), np.zeros(logits.shape[1])

    def change(shares: FloatArray) -> FloatArray:
        part = shares[known] / max(float(shares[known].sum()), 1e-12)
        return np.asarray(weight * (part @ centers - mean) - offset, dtype=np.float64)

    enough = len(logits) >= FEWEST
    if mix is not None:
        return SiteOffset(change(mix) * enough, mix, len(logits), float(enough), given=True)
    for _ in range(STEPS):
        found = softmax((logits + offset) / learned.softness, axis=1).mean(axis=0)
        step = change(found)
        offset = offset + step / 2  # whole steps may go back and forth
        if np.abs(step).max() < TOLERANCE:
            break
    outside = float(np.maximum(found - learned.shares, 0).sum())
    strength = learned.strength * max(1 - OUTSIDE * outside, 0.0) * enough
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


# The strength, from held-out sites


@dataclass(frozen=True, eq=False)
class HeldOutLogits:
    """Calibrated logits and labels at a held-out site, and what the model of the other sites knows."""

    learned: SiteAdaptation
    logits: FloatArray
    labels: IntArray


def choose_adaptation(sites: Sequence[HeldOutLogits], learned: SiteAdaptation) -> SiteAdaptation:
    """Choose strength and softness as would have helped at held-out sites of different sizes and mixes.

    Args:
        sites: The held-out sites.
        learned: What the final model knows.

    Returns:
        The same with strength (0 if nothing is safe and helps), softness and gain.
    """
    if len(sites) < 2:
        return learned
    gains = np.stack([site_gains(site) for site in sites], axis=2)  # softness, strength, site, kind of mix, measure
    value, accuracy = gains.mean(axis=(2, 3, 4)), gains[..., 0]
    value = np.where(accuracy.min(axis=(2, 3)) >= WORST, value, -np.inf)
    soft, strong = np.unravel_index(int(value.argmax()), value.shape)
    if value[soft, strong] < LEAST_GAIN:
        return learned
    gain = float(accuracy[soft, strong, :, 0].mean())
    return replace(learned, strength=STRENGTHS[strong], softness=SOFTNESS[soft], gain=gain)


def site_gains(site: HeldOutLogits) -> FloatArray:
    """Gains for each softness, strength, kind of mix and measure, (3, 4, 3, 2).

    The kinds are the mix of the site, a balanced one, and mixes with one dominant class; the measures accuracy and
    accuracy over classes.
    """
    rng, n = np.random.default_rng(0), len(site.labels)
    found = np.zeros((len(SOFTNESS), len(STRENGTHS), 3, 2))
    for kind, mixes in enumerate(_mixes(site.labels)):
        draws = [rng.choice(n, size, p=weights) for weights in mixes for size in SIZES for _ in range(DRAWS)]
        for k, softness in enumerate(SOFTNESS):
            learned = replace(site.learned, strength=1.0, softness=softness)
            gains = [_gains(learned, site.logits[rows], site.labels[rows]) for rows in draws]
            found[k, :, kind] = np.mean(gains, axis=0)
    return found


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


def _gains(learned: SiteAdaptation, logits: FloatArray, labels: IntArray) -> list[tuple[float, float]]:
    offset, before = site_offset(learned, logits).values, logits.argmax(axis=1) == labels
    found = []
    for strength in STRENGTHS:
        after = (logits + strength * offset).argmax(axis=1) == labels
        change = after.astype(np.float64) - before
        found.append((float(change.mean()), float(np.mean([change[labels == k].mean() for k in np.unique(labels)]))))
    return found

"""What accuracies at held-out sites say about one more site: predictive intervals on the logit scale.

Both intervals are Bayesian, because a handful of sites cannot show by themselves how much sites differ. The priors
below were chosen by nested simulation; docs/results/new-site.md has their coverage on other draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import special, stats

LEVEL = 0.8  # of the intervals: with a handful of sites, 95% would say nothing
ENOUGH_SITES = 5  # held-out sites; below it, the prior decides more than they do
SPREAD, SPREAD_WEIGHT = 0.8, 3.0  # prior standard deviation between sites, in logits, and how many sites it counts as
RESIDUAL, RESIDUAL_WEIGHT = 0.35, 4.0  # the same for the error of a label-free estimate
# How many sites the prior of each coefficient counts as: a constant error, and an error that grows with the estimate.
# The larger, the less is learned from the held-out sites.
COEFFICIENTS = (2.0, 5.0)


@dataclass(frozen=True)
class Range:
    """An expected accuracy and the interval that holds the true one with probability `LEVEL`."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class LogitRange:
    """The same in logits: the middle of the interval and half its width."""

    center: float
    half: float

    def shares(self) -> Range:
        """From 0 to 1."""
        ends = (self.center, self.center - self.half, self.center + self.half)
        return Range(*(float(special.expit(value)) for value in ends))


def logit_share(share: float, n: float) -> float:
    """The logit of a share of n samples, half a sample away from 0 and 1.

    >>> round(logit_share(0.5, 10), 3), round(logit_share(1.0, 9), 3)
    (0.0, 2.944)
    """
    return float(special.logit((min(max(share, 0.0), 1.0) * n + 0.5) / (n + 1)))


def one_more_site(accuracies: Sequence[float], sizes: Sequence[int]) -> Range:
    """The accuracy to expect at one more site, from the accuracies at sites that were held out, and its interval.

    The spread between sites is estimated from them and from a prior, which is wider the fewer sites there are: the
    models of two sites were each trained on one, so they say little about a model of both.

    >>> found = one_more_site([0.92, 0.9], [500, 500])
    >>> round(found.mean, 2), round(found.low, 2), round(found.high, 2)
    (0.91, 0.43, 0.99)
    """
    values = np.array([logit_share(a, n) for a, n in zip(accuracies, sizes, strict=True)])
    k, center = len(values), float(values.mean())
    prior = SPREAD * (1 + 1 / (k - 1)) if k > 1 else 4 * SPREAD
    freedom = SPREAD_WEIGHT + k - 1
    variance = (SPREAD_WEIGHT * prior**2 + float(np.square(values - center).sum())) / freedom
    found = LogitRange(center, _half(float(np.sqrt(variance * (1 + 1 / k))), freedom)).shares()
    return replace(found, mean=float(np.mean(accuracies)))


@dataclass(frozen=True)
class Evidence:
    """A held-out site: what predictions alone said about the accuracy there and what it was, in logits."""

    estimate: float
    truth: float
    weight: float = 1.0  # how much like the final model its model is


def corrected_estimate(estimate: float, held: Sequence[Evidence]) -> LogitRange:
    """The accuracy at a new site: its label-free estimate in logits, corrected by the errors at held-out sites.

    The error is a linear function of the estimate, with a prior that expects no error.
    """
    weights = np.array([site.weight for site in held])
    estimates = np.array([site.estimate for site in held])
    middle = float(np.average(estimates, weights=weights)) if len(held) else estimate
    rows = np.stack([np.ones(len(held)), estimates - middle], axis=1)
    errors = np.array([site.truth for site in held]) - estimates
    precision = (rows * weights[:, None]).T @ rows + np.diag(COEFFICIENTS)
    learned = np.linalg.solve(precision, rows.T @ (weights * errors))
    freedom = RESIDUAL_WEIGHT + float(weights.sum())
    left = float(weights @ errors**2 - learned @ precision @ learned)
    row = np.array([1.0, estimate - middle])
    scale = (RESIDUAL_WEIGHT * RESIDUAL**2 + left) / freedom * (1 + float(row @ np.linalg.solve(precision, row)))
    return LogitRange(estimate + float(row @ learned), _half(float(np.sqrt(scale)), freedom))


def _half(scale: float, freedom: float) -> float:
    """Half the interval of a t distribution."""
    return float(stats.t.ppf((1 + LEVEL) / 2, freedom)) * scale

"""Intervals for one more site: their formulas, and how often they hold the truth where it is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

from longshift.analysis import LEVEL, Evidence, corrected_estimate, logit_share, one_more_site
from longshift.analysis.site_intervals import COEFFICIENTS, RESIDUAL, RESIDUAL_WEIGHT


def test_a_new_site_falls_into_the_interval_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    hits = []
    for _ in range(2000):
        # Sites of a population as different as the prior expects: the interval is exact there.
        spread = 1.0 / np.sqrt(rng.chisquare(3) / 3)
        shares = special.expit(rng.normal(1.0, spread, 6))
        found = one_more_site(shares[:5].tolist(), [10**6] * 5)
        hits.append(found.low <= shares[5] <= found.high)
    assert np.mean(hits) == pytest.approx(LEVEL, abs=0.03)


def test_more_sites_that_agree_give_a_narrower_interval() -> None:
    widths = []
    for k in (1, 2, 3, 5, 10, 40):
        found = one_more_site([0.85] * k, [300] * k)
        widths.append(found.high - found.low)
    assert widths == sorted(widths, reverse=True)
    assert widths[1] > 0.5


def test_accuracies_of_one_and_zero_are_finite() -> None:
    found = one_more_site([1.0, 1.0, 0.0], [9, 9, 9])
    assert 0 <= found.low < found.high <= 1


def test_without_held_out_errors_the_estimate_stays() -> None:
    held = [Evidence(0.5, 0.5), Evidence(1.5, 1.5), Evidence(1.0, 1.0)]
    found = corrected_estimate(0.8, held).shares()
    assert found.mean == pytest.approx(special.expit(0.8))
    assert found.low < found.mean < found.high


def test_the_correction_is_bayesian_linear_regression() -> None:
    """Against the textbook posterior with the covariance of all samples written out."""
    rng = np.random.default_rng(1)
    numbers = zip(rng.normal(1, 1, 6), rng.normal(0, 1, 6), (1, 1, 0.3, 1, 0.3, 1), strict=True)
    held = [Evidence(float(a), float(b), weight) for a, b, weight in numbers]
    found = corrected_estimate(0.3, held).shares()
    estimates, weights = (np.array([getattr(site, name) for site in held]) for name in ("estimate", "weight"))
    middle = np.average(estimates, weights=weights)
    x = np.array([[1, value - middle] for value in (*estimates, 0.3)])
    errors = np.array([site.truth for site in held]) - estimates
    covariance = np.diag([*(1 / weights), 1.0]) + x @ np.diag(1 / np.array(COEFFICIENTS)) @ x.T
    inverse = np.linalg.inv(covariance[:6, :6])
    center = 0.3 + covariance[6, :6] @ inverse @ errors
    freedom = RESIDUAL_WEIGHT + weights.sum()
    variance = (RESIDUAL_WEIGHT * RESIDUAL**2 + errors @ inverse @ errors) / freedom
    variance *= covariance[6, 6] - covariance[6, :6] @ inverse @ covariance[:6, 6]
    half = stats.t.ppf((1 + LEVEL) / 2, freedom) * np.sqrt(variance)
    expected = special.expit([center - half, center, center + half])
    assert (found.low, found.mean, found.high) == pytest.approx(tuple(expected))


def test_an_estimate_that_was_too_high_everywhere_is_lowered() -> None:
    found = corrected_estimate(2.0, [Evidence(2.0, 0.0)] * 5)
    assert found.shares().mean < 0.7
    assert corrected_estimate(2.0, [Evidence(2.0, 0.0)]).center > found.center  # one site convinces less
    assert corrected_estimate(2.0, [Evidence(2.0, 0.0, weight=0.3)] * 5).center > found.center


def test_logits_of_shares() -> None:
    assert logit_share(0.8, 10**9) == pytest.approx(np.log(4))
    assert logit_share(0.0, 9) == pytest.approx(-logit_share(1.0, 9))

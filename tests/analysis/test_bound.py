"""The bound on Gaussians where every term is known, among them the paper's example of a changed class prior."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from longshift.analysis.bound import (
    closest_mixture,
    domain_distance,
    generalization_bound,
    mixture_weights,
    posterior_at,
    posterior_out_of_fold,
    total_variation,
)
from longshift.analysis.domains import DomainOutputs, domain_outputs
from longshift.array_types import FloatArray
from longshift.errors import LongshiftError

BIAS = math.log(9)  # log odds of a prior of 0.9


def two_gaussians(name: str, prior: float, n: int, seed: int, bias: float = BIAS, shift: float = 0.0) -> DomainOutputs:
    """P(X | Y=0) = N([-1, 0], I), P(X | Y=1) = N([1, 0], I), P(Y=1) = prior; the model has log odds 2 x_1 + bias."""
    rng = np.random.default_rng(seed)
    ones = round(n * prior)
    y = np.repeat([1, 0], [ones, n - ones])
    x = rng.normal(size=(n, 2)) + np.stack([2.0 * y - 1.0, np.zeros(n)], axis=1)
    odds = 2 * x[:, 0] + bias
    return domain_outputs(name, np.stack([np.zeros(n), odds], axis=1), y, x + np.array([0.0, shift]))


def risk(prior: float, bias: float = BIAS) -> float:
    """0-1 risk of predicting 1 where 2 x_1 + bias > 0."""
    cut = -bias / 2
    return float((1 - prior) * norm.sf(cut, -1) + prior * norm.cdf(cut, 1))


def posterior_gap(prior_a: float, prior_b: float, prior_x: float) -> float:
    """E_{x ~ P(X)} |P_a(1 | x) - P_b(1 | x)|, P(X) with class prior `prior_x`, by quadrature."""

    def p(prior: float, t: float) -> float:
        return 1 / (1 + math.exp(-(2 * t + math.log(prior / (1 - prior)))))

    def density(t: float) -> float:
        return float(prior_x * norm.pdf(t, 1) + (1 - prior_x) * norm.pdf(t, -1))

    return float(quad(lambda t: density(t) * abs(p(prior_a, t) - p(prior_b, t)), -9, 9, limit=200)[0])


@pytest.mark.slow
def test_the_papers_example_of_a_changed_prior() -> None:
    # Source 0.1 / 0.9, target 0.9 / 0.1, the same class-conditional Gaussians: every term has a closed form.
    source, target = two_gaussians("s", 0.9, 4000, 0), two_gaussians("t", 0.1, 4000, 1)
    bound = generalization_bound([source], target, limit=4000)
    assert bound.weights == {"s": 1.0}
    assert bound.source_risk == pytest.approx(risk(0.9), abs=0.012)
    assert bound.target_risk == pytest.approx(risk(0.1), abs=0.025)
    assert bound.margin == bound.source_risk  # with delta = 0 a small margin is an error
    # P_S(X) - P_T(X) = 0.8 (N(1) - N(-1)): total variation 0.8 (2 Phi(1) - 1), reached on the half-space x_1 > 0.
    assert bound.prior_out == pytest.approx(0.8 * (2 * norm.cdf(1) - 1), abs=0.03)
    assert bound.posterior_out == pytest.approx(posterior_gap(0.9, 0.1, 0.1), abs=0.03)
    assert bound.prior_in == 0.0
    assert bound.posterior_in == 0.0
    parts = (bound.source_risk, bound.margin, bound.prior_out, bound.posterior_out)
    assert bound.total == pytest.approx(sum(part or 0 for part in parts))
    assert bound.total > bound.target_risk > 3 * bound.source_risk


def test_several_sources_with_a_known_mixture() -> None:
    # P(Y=1) = 0.4 of the target is 1/6 of 0.9 and 5/6 of 0.3, exactly, as a joint distribution too.
    sources = [two_gaussians("a", 0.9, 2400, 4), two_gaussians("b", 0.3, 2400, 5)]
    target = two_gaussians("t", 0.4, 2400, 6)
    bound = generalization_bound(sources, target, limit=2400)
    assert bound.weights["a"] == pytest.approx(1 / 6, abs=0.06)
    pi = bound.weights["a"]
    assert bound.source_risk == pytest.approx(pi * risk(0.9) + (1 - pi) * risk(0.3), abs=0.02)
    assert bound.prior_in == pytest.approx(0.6 * (2 * norm.cdf(1) - 1), abs=0.04)
    assert bound.posterior_in == pytest.approx(posterior_gap(0.9, 0.3, 0.4), abs=0.04)
    assert bound.prior_out == pytest.approx(0, abs=0.06)  # the target lies in the hull
    assert bound.hull_distance < 0.05


@pytest.mark.parametrize("goal", [0, 1, 2])
def test_a_target_that_is_a_source_gets_all_the_weight(goal: int) -> None:
    sources = [
        two_gaussians(f"d{i}", p, 600, 10 + i, shift=s) for i, (p, s) in enumerate([(0.9, 0), (0.1, 3), (0.5, -3)])
    ]
    weights = mixture_weights(sources, sources[goal]).weights
    np.testing.assert_allclose(weights, np.eye(3)[goal], atol=1e-6)


@given(st.integers(0, 10_000), st.integers(1, 5))
@settings(max_examples=40, deadline=None)
def test_the_projection_is_optimal(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(count + 1, 4))
    found = closest_mixture(points @ points.T)
    pi = found.weights
    assert pi.min() >= 0
    assert pi.sum() == pytest.approx(1)
    gap = pi @ points[:-1] - points[-1]
    assert found.distance == pytest.approx(float(np.linalg.norm(gap)), abs=1e-7)
    # First-order condition on the simplex: no vertex lies further down the gradient.
    slopes = (points[:-1] - pi @ points[:-1]) @ gap
    assert slopes.min() >= -1e-7


def test_two_points_by_hand() -> None:
    points = np.array([[0.0, 0.0], [4.0, 0.0], [1.0, 2.0]])
    found = closest_mixture(points @ points.T)
    np.testing.assert_allclose(found.weights, [0.75, 0.25], atol=1e-9)
    assert found.distance == pytest.approx(2.0)
    with pytest.raises(LongshiftError, match="embeddings"):
        generalization_bound([domain_outputs("x", np.zeros((3, 2)), np.zeros(3, int))], two_gaussians("t", 0.5, 9, 0))


def test_domain_classifier_on_known_total_variation() -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=(2000, 3)), rng.normal(size=(2000, 3)) + np.array([1.0, 0.0, 0.0])])
    first, second = x[:2000], x[2000:]
    assert domain_distance([first], second, np.ones(1)) == pytest.approx(2 * norm.cdf(0.5) - 1, abs=0.04)
    assert domain_distance([first[:1]], second, np.ones(1)) is None  # one sample on a side


def test_probe_posteriors() -> None:
    domain = two_gaussians("d", 0.9, 3000, 3)
    grid = np.stack([np.linspace(-2, 2, 9), np.zeros(9)], axis=1)
    found = posterior_at(domain.features(), domain.labels, grid, 3)
    np.testing.assert_allclose(found[:, 1], 1 / (1 + np.exp(-(2 * grid[:, 0] + BIAS))), atol=0.05)
    np.testing.assert_array_equal(found[:, 2], 0.0)
    alone = posterior_at(grid, np.full(9, 2), grid, 3)
    np.testing.assert_array_equal(alone, np.eye(3)[[2] * 9])
    own = posterior_out_of_fold(domain.features(), domain.labels, 2)
    assert own is not None
    np.testing.assert_allclose(own.sum(1), 1.0)
    # Labels that mean nothing: a probe judged on what it has seen would find a posterior, out of fold there is none.
    rng = np.random.default_rng(0)
    noise, coin = rng.normal(size=(200, 60)), rng.integers(0, 2, 200)
    held = posterior_out_of_fold(noise, coin, 2)
    assert held is not None
    assert (held.argmax(1) == coin).mean() < 0.62
    assert (posterior_at(noise, coin, noise, 2).argmax(1) == coin).mean() > 0.75


@given(st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_total_variation_is_the_largest_gap_over_events(seed: int) -> None:
    p, q = np.random.default_rng(seed).dirichlet(np.ones(4), size=2)
    events = [[bool(code >> k & 1) for k in range(4)] for code in range(16)]
    largest = max(abs(float((p - q)[event].sum())) for event in events)
    assert float(total_variation(p, q)) == pytest.approx(largest)


def noisy(name: str, labels: list[int], seed: int, classes: int = 3) -> DomainOutputs:
    rng = np.random.default_rng(seed)
    y = np.array(labels)
    logits: FloatArray = rng.normal(size=(len(y), classes)) + np.eye(classes)[y]
    return domain_outputs(name, logits, y, rng.normal(size=(len(y), 4)) + y[:, None])


def test_unhappy_domains() -> None:
    many = noisy("a", [0, 1, 2] * 20, 0)
    lone_target = generalization_bound([many, noisy("b", [0, 1] * 20, 1)], noisy("t", [1], 2))
    assert lone_target.prior_out is lone_target.posterior_out is None
    known = lone_target.source_risk + lone_target.margin + (lone_target.prior_in or 0) + lone_target.posterior_in
    assert lone_target.total == pytest.approx(known)
    lone_source = generalization_bound([many, noisy("b", [2], 1)], noisy("t", [0, 1, 1, 0] * 9, 2))
    assert lone_source.prior_in is None
    # A class absent from the target, and sources that hold one class each.
    absent = generalization_bound([noisy("a", [0] * 30, 3), noisy("b", [1] * 30, 4)], noisy("t", [1] * 30, 5))
    assert absent.posterior_in == pytest.approx(1.0)
    assert absent.weights["b"] > 0.95
    assert absent.posterior_out == pytest.approx(absent.weights["a"])  # the mass on a class it lacks

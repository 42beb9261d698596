"""Penalties on differences between domains: functions and modules."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import example, given, settings, strategies as st
from scipy.optimize import brentq
from scipy.stats import norm
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from longshift.losses import (
    BoDALoss,
    CORALLoss,
    FishrPenalty,
    IRMPenalty,
    MMDLoss,
    PrototypeAlignment,
    VRExPenalty,
    head_gradient_variance,
    irm_penalty,
    spread,
)
from longshift.losses.boda import group_means
from longshift.losses.invariance import kde_quantile


def problem(domains: int, n: int, classes: int, width: int = 6) -> tuple[Tensor, Tensor, nn.Linear]:
    generator = torch.Generator().manual_seed(domains * 100 + n * 10 + classes)
    features = torch.randn(domains, n, width, generator=generator, dtype=torch.float64)
    y = torch.randint(classes, (domains, n), generator=generator)
    head = nn.Linear(width, classes).double()
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return features, y, head


@pytest.mark.parametrize(("domains", "n", "classes"), [(2, 2, 2), (3, 5, 4), (5, 8, 65)])
def test_irm_penalty_is_the_product_of_slopes(domains: int, n: int, classes: int) -> None:
    features, y, head = problem(domains, n, classes)
    logits = head(features).detach()
    expected = []
    for z, labels in zip(logits, y, strict=True):
        slopes = []
        for half in (slice(0, None, 2), slice(1, None, 2)):
            factor = torch.ones((), dtype=torch.float64, requires_grad=True)
            (slope,) = torch.autograd.grad(cross_entropy(factor * z[half], labels[half]), factor)
            slopes.append(slope)
        expected.append(slopes[0] * slopes[1])
    d = torch.arange(domains).repeat_interleave(n)
    actual = irm_penalty(logits.flatten(0, 1), y.flatten(), d, domains)
    torch.testing.assert_close(actual, torch.stack(expected), rtol=0, atol=1e-12)
    order = torch.arange(domains * n).reshape(domains, n).T.flatten()  # domains in turn, each in its own order
    mixed = irm_penalty(logits.flatten(0, 1)[order], y.flatten()[order], d[order], domains + 1)
    torch.testing.assert_close(mixed[:-1], actual, rtol=0, atol=1e-12)
    assert float(mixed[-1]) == 0


@pytest.mark.parametrize(("domains", "n", "classes"), [(2, 2, 2), (3, 5, 4), (2, 3, 65)])
def test_gradient_variance_is_that_of_the_samples_gradients(domains: int, n: int, classes: int) -> None:
    features, y, head = problem(domains, n, classes)
    expected = []
    for rows, labels in zip(features, y, strict=True):
        gradients = []
        for row, label in zip(rows, labels, strict=True):
            risk = cross_entropy(head(row), label)
            gradients.append(torch.cat([g.flatten() for g in torch.autograd.grad(risk, list(head.parameters()))]))
        expected.append(torch.stack(gradients).var(0, correction=0))
    actual = head_gradient_variance(features, head(features), y)
    torch.testing.assert_close(actual.detach(), torch.stack(expected), rtol=0, atol=1e-12)


def test_gradient_variance_in_float32_far_from_zero_mean() -> None:
    # Large features of little spread are the hard case of mean of squares minus square of mean.
    features, y, head = problem(2, 32, 5)
    features = 10 + features
    exact = head_gradient_variance(features, head(features), y)
    single = head_gradient_variance(features.float(), head(features).float(), y)
    exact, single = exact.detach(), single.detach()
    assert float((single - exact).abs().max()) < 1e-5 * float(exact.abs().max())


def test_spread_is_the_population_variance() -> None:
    values = torch.tensor([1.0, 4.0, 7.0])
    assert float(spread(values)) == pytest.approx(6.0)
    table = torch.randn(4, 9, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(spread(table), table.var(0, correction=0).mean())


def test_masks_give_the_variance_of_domains_of_different_size() -> None:
    features, y, head = problem(1, 9, 4)
    d = torch.tensor([0, 2, 0, 2, 2, 0, 2, 2, 0])
    member = torch.stack([d == k for k in range(3)])
    actual = head_gradient_variance(features[0], head(features[0]), y[0], member)
    for k in (0, 2):
        own = features[:, d == k]
        torch.testing.assert_close(actual[k], head_gradient_variance(own, head(own), y[:, d == k])[0])
    assert not actual[1].any()


def test_spread_of_the_present_domains() -> None:
    table = torch.randn(4, 9, generator=torch.Generator().manual_seed(0))
    present = torch.tensor([True, False, True, True])
    torch.testing.assert_close(spread(table, present), spread(table[present]))
    torch.testing.assert_close(spread(table[:, 0], present), spread(table[present, 0]))


RISKS = [[0.3, 2.0], [2.3, 2.9, 1.7], [0.1, 0.1, 0.1, 5.0], [1.0, 1.5, 2.5, 0.2, 0.9]]


def exact(risks: npt.NDArray[np.float64], alpha: float) -> float:
    h = 1.06 * risks.std(ddof=1) * len(risks) ** -0.2
    reach = 10 * h
    return float(brentq(lambda x: norm.cdf((x - risks) / h).mean() - alpha, risks.min() - reach, risks.max() + reach))


@pytest.mark.parametrize("risks", RISKS)
@pytest.mark.parametrize("alpha", [0.05, 0.5, 0.75, 0.99])
@pytest.mark.parametrize("implicit", [False, True])
def test_value(risks: list[float], alpha: float, implicit: bool) -> None:
    values = torch.tensor(risks, dtype=torch.float64)
    assert float(kde_quantile(values, alpha, implicit)) == pytest.approx(exact(values.numpy(), alpha), abs=3e-9)


@pytest.mark.parametrize("alpha", [0.1, 0.75, 0.95])
@pytest.mark.parametrize("risks", [RISKS[1], RISKS[3]])
def test_implicit_gradient_is_the_derivative_of_the_quantile(risks: list[float], alpha: float) -> None:
    values = torch.tensor(risks, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(kde_quantile(values, alpha, implicit=True), values)
    step = 1e-4
    for index, slope in enumerate(gradient):
        change = np.zeros(len(risks))
        change[index] = step
        numeric = (exact(np.array(risks) + change, alpha) - exact(np.array(risks) - change, alpha)) / (2 * step)
        assert float(slope) == pytest.approx(numeric, abs=1e-6)


def published_gradient(values: Tensor, alpha: float) -> Tensor:
    """The bisection written as published, differentiated through its own steps."""
    n = len(values)
    h = 1.06 * values.std() * n**-0.2
    z = float(norm.ppf(alpha))
    ends = [values.min() + h * z, values.max() + h * z]
    middle = 0.5 * (ends[0] + ends[1])
    for _ in range(32):
        above = float(torch.special.ndtr((middle - values) / h).mean().detach()) > alpha
        ends[int(above)] = middle
        middle = 0.5 * (ends[0] + ends[1])
    (gradient,) = torch.autograd.grad(middle, values)
    return gradient


@pytest.mark.parametrize("risks", RISKS)
@pytest.mark.parametrize("alpha", [0.3, 0.75, 0.95])
def test_published_gradient(risks: list[float], alpha: float) -> None:
    values = torch.tensor(risks, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(kde_quantile(values, alpha), values)
    torch.testing.assert_close(gradient, published_gradient(values, alpha), rtol=0, atol=1e-8)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("implicit", [False, True])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_equal_risks_give_that_risk_and_a_finite_gradient(dtype: torch.dtype, implicit: bool, n: int) -> None:
    values = torch.full((n,), 1.25, dtype=dtype, requires_grad=True)
    quantile = kde_quantile(values, 0.75, implicit)
    (gradient,) = torch.autograd.grad(quantile, values)
    assert float(quantile.detach()) == 1.25
    assert float(gradient.sum()) == pytest.approx(1.0)


@settings(deadline=None, max_examples=60)
@example([20.0, 19.999999999999996], 0.25, False, 0.0)
@example([20.0, 19.999999999999996, 20.0], 0.9, True, 1.0)
@given(st.lists(st.floats(0, 20), min_size=2, max_size=6), st.floats(0.01, 0.99), st.booleans(), st.floats(-5, 5))
def test_shifting_all_risks_shifts_the_quantile(risks: list[float], alpha: float, implicit: bool, shift: float) -> None:
    values = torch.tensor(risks, dtype=torch.float64, requires_grad=True)
    quantile = kde_quantile(values, alpha, implicit)
    (gradient,) = torch.autograd.grad(quantile, values)
    assert float(gradient.sum()) == pytest.approx(1.0, abs=1e-6)
    moved = kde_quantile(values.detach() + shift, alpha, implicit)
    assert float(moved) == pytest.approx(float(quantile.detach()) + shift, abs=1e-6)


D = torch.tensor([2, 0, 0, 2, 0, 2, 2, 0, 2])  # three domains, of which number 1 has no sample
Y = torch.tensor([0, 1, 2, 2, 1, 0, 1, 0, 1])


def features(width: int = 4, seed: int = 0) -> Tensor:
    return torch.randn(len(D), width, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_vrex_is_the_variance_of_the_risks_of_present_domains() -> None:
    losses = features(1)[:, 0].exp()
    risks = torch.stack([losses[k == D].mean() for k in (0, 2)])
    torch.testing.assert_close(VRExPenalty(3)(losses, D), risks.var(correction=0))


def test_irm_is_the_mean_over_present_domains() -> None:
    logits = features(3)
    each = [irm_penalty(logits[k == D], Y[k == D], torch.zeros_like(D[k == D]), 1)[0] for k in (0, 2)]
    torch.testing.assert_close(IRMPenalty(3)(logits, Y, D), torch.stack(each).mean())


def test_fishr_keeps_a_moving_average_of_the_domains_it_has_seen() -> None:
    head = nn.Linear(4, 3).double()
    fishr = FishrPenalty(3, 3, 4, ema=0.6).double()
    average = torch.zeros(3, 15, dtype=torch.float64)
    for seed in range(3):
        x = features(4, seed)
        penalty = fishr(x, head(x), Y, D)
        for k in (0, 2):
            own = x[k == D][None]
            average[k] = 0.6 * average[k] + 0.4 * head_gradient_variance(own, head(own), Y[k == D][None])[0]
        torch.testing.assert_close(penalty, spread(average[[0, 2]] / 0.4))
        average = average.detach()
    torch.testing.assert_close(fishr.state_dict()["average"], average)


def test_fishr_stores_no_average_in_evaluation_mode() -> None:
    head = nn.Linear(4, 3).double()
    fishr = FishrPenalty(3, 3, 4).double()
    x = features(4)
    fishr(x, head(x), Y, D)
    before = fishr.average.clone()
    first, second = (fishr.eval()(features(4, 1), head(features(4, 1)), Y, D) for _ in range(2))
    torch.testing.assert_close(first, second)
    assert torch.equal(fishr.average, before)
    fishr.train()(x, head(x), Y, D)
    assert not torch.equal(fishr.average, before)


def test_boda_replaces_centroids_first_and_averages_afterwards() -> None:
    x = features()
    boda = BoDALoss([[4, 2, 2], [1, 1, 1], [9, 3, 3]], 4, momentum=0.25).double()
    boda.update(x, Y, D)
    means, _ = group_means(x, Y, D, 3, 3)
    torch.testing.assert_close(boda.centroids, means)
    boda.update(x + 1, Y, D)
    torch.testing.assert_close(boda.centroids[0], (means + 0.75)[0])
    assert not boda.centroids[1].any()
    assert boda.seen.any(1).tolist() == [True, False, True]
    assert sorted(boda.state_dict()) == ["centroids", "seen"]
    assert float(boda(x, Y, D)) > 0


def test_errors_name_what_was_expected() -> None:
    with pytest.raises(ValueError, match="`domains`"):
        CORALLoss(0)
    with pytest.raises(ValueError, match="`gammas`"):
        MMDLoss(2, gammas=())
    with pytest.raises(ValueError, match="`ema`"):
        FishrPenalty(2, 2, 2, ema=1.0)
    with pytest.raises(ValueError, match="`temperature`"):
        BoDALoss([[1, 1]], 2, temperature=0)
    with pytest.raises(ValueError, match="`alignment`"):
        PrototypeAlignment(alignment="own")  # type: ignore[arg-type]

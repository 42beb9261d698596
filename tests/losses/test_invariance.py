"""IRM's and Fishr's penalties against automatic differentiation, sample by sample."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from longshift.losses.invariance import head_gradient_variance, irm_penalty, spread


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

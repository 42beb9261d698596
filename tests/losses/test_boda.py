"""The BoDA loss against plain loops, and its edge cases."""

import math

import torch
from hypothesis import given, settings, strategies as st
from torch import Tensor

from longshift.losses.boda import boda_loss, group_means


def by_loops(
    features: Tensor, y: Tensor, d: Tensor, centroids: Tensor, counts: Tensor, nu: float, temperature: float
) -> float:
    """The definition, one sample and one centroid at a time."""
    domains, classes = counts.shape
    groups = [(a, k) for a in range(domains) for k in range(classes) if counts[a, k] > 0]
    total, pairs = 0.0, 0
    for f, k, a in zip(features, y.tolist(), d.tolist(), strict=True):
        own = max(float(counts[a, k]), 1.0)
        logit = {}
        for b, m in groups:
            if (b, m) != (a, k):
                distance = math.dist(f.tolist(), centroids[b, m].tolist())
                logit[b, m] = -distance / own * (float(counts[b, m]) / own) ** nu / temperature
        bottom = math.log(sum(math.exp(v) for v in logit.values())) if logit else 0.0
        for (b, m), v in logit.items():
            if m == k and b != a:
                total -= v - bottom
                pairs += 1
    return total / max(pairs, 1)


@settings(deadline=None, max_examples=40)
@given(
    domains=st.integers(1, 4),
    classes=st.integers(2, 5),
    nu=st.floats(0.0, 1.0),
    temperature=st.floats(0.1, 3.0),
    seed=st.integers(0, 10_000),
)
def test_agrees_with_loops_also_with_empty_groups(
    domains: int, classes: int, nu: float, temperature: float, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    rows = 6
    features = torch.randn(rows, 3, generator=generator, dtype=torch.float64, requires_grad=True)
    centroids = torch.randn(domains, classes, 3, generator=generator, dtype=torch.float64)
    counts = torch.randint(0, 5, (domains, classes), generator=generator)
    y = torch.randint(0, classes, (rows,), generator=generator)
    d = torch.randint(0, domains, (rows,), generator=generator)
    loss = boda_loss(features, y, d, centroids, counts, nu, temperature)
    assert abs(loss.item() - by_loops(features, y, d, centroids, counts, nu, temperature)) < 1e-10
    (grad,) = torch.autograd.grad(loss, [features])
    assert torch.isfinite(grad).all()


def test_without_any_other_group_the_loss_and_its_gradient_are_zero() -> None:
    features = torch.randn(4, 3, requires_grad=True)
    y, d = torch.zeros(4, dtype=torch.int64), torch.zeros(4, dtype=torch.int64)
    counts = torch.tensor([[4, 0], [0, 0]])
    loss = boda_loss(features, y, d, torch.zeros(2, 2, 3), counts, 0.5, 1.0)
    (grad,) = torch.autograd.grad(loss, [features])
    assert loss.item() == 0.0
    assert torch.equal(grad, torch.zeros_like(grad))


def test_a_sample_on_a_centroid_has_a_finite_gradient() -> None:
    centroids = torch.randn(2, 2, 3)
    features = centroids[1, :1].clone().requires_grad_()
    counts = torch.ones(2, 2)
    loss = boda_loss(features, torch.tensor([0]), torch.tensor([0]), centroids, counts, 0.5, 1.0)
    (grad,) = torch.autograd.grad(loss, [features])
    assert torch.isfinite(grad).all()


def test_group_means_agree_with_loops() -> None:
    generator = torch.Generator().manual_seed(1)
    features = torch.randn(30, 4, generator=generator, dtype=torch.float64)
    y, d = torch.randint(0, 3, (30,), generator=generator), torch.randint(0, 2, (30,), generator=generator)
    y[d == 1] = y[d == 1].clamp_max(1)  # domain 1 lacks class 2
    means, sizes = group_means(features, y, d, 2, 3)
    for a in range(2):
        for k in range(3):
            rows = (d == a) & (y == k)
            assert sizes[a, k] == rows.sum()
            expected = features[rows].mean(0) if rows.any() else torch.zeros(4, dtype=torch.float64)
            torch.testing.assert_close(means[a, k], expected)
    assert sizes[1, 2] == 0

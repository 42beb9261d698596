"""Kernels, MMD and HSIC against loops and closed forms."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist
from torch import Tensor

from longshift.losses.invariance import pairwise_coral
from longshift.losses.kernels import (
    MMD_GAMMAS,
    RISK_GAMMAS,
    class_hsic,
    class_medians,
    classes_present,
    mmd,
    pairwise_mmd,
    squared_distances,
)

SHAPES = [(2, 2, 3), (3, 8, 12), (5, 5, 2), (4, 3, 40)]


def random_features(shape: tuple[int, ...], seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def flat_mmd(features: Tensor) -> Tensor:
    """Of features (D, n, F), as a batch sorted by domain."""
    d = torch.arange(len(features)).repeat_interleave(features.shape[1])
    return pairwise_mmd(features.flatten(0, 1), d, len(features))


def flat_coral(features: Tensor) -> Tensor:
    """Of features (D, n, F), as a batch sorted by domain."""
    d = torch.arange(len(features)).repeat_interleave(features.shape[1])
    return pairwise_coral(features.flatten(0, 1), d, len(features))


def loop_coral(parts: Sequence[Tensor]) -> float:
    covariances = [np.atleast_2d(np.cov(x.numpy(), rowvar=False)) for x in parts]
    means = [x.numpy().mean(0) for x in parts]
    pairs = itertools.combinations(range(len(parts)), 2)
    gaps = [((means[i] - means[j]) ** 2).mean() + ((covariances[i] - covariances[j]) ** 2).mean() for i, j in pairs]
    return float(np.mean(gaps))


def loop_kernel(a: Tensor, b: Tensor, gammas: tuple[float, ...]) -> float:
    values = [sum(np.exp(-g * float(((x - y) ** 2).sum())) for g in gammas) for x in a for y in b]
    return float(np.mean(values))


def loop_mmd(a: Tensor, b: Tensor, gammas: tuple[float, ...]) -> float:
    return loop_kernel(a, a, gammas) + loop_kernel(b, b, gammas) - 2 * loop_kernel(a, b, gammas)


@pytest.mark.parametrize("shape", SHAPES)
def test_pairwise_mmd_is_the_mean_over_pairs(shape: tuple[int, int, int]) -> None:
    features = random_features(shape)
    expected = np.mean([loop_mmd(a, b, MMD_GAMMAS) for a, b in itertools.combinations(features, 2)])
    assert float(flat_mmd(features)) == pytest.approx(expected, abs=1e-12)


def test_mmd_of_samples_of_different_size() -> None:
    a, b = random_features((4, 1)), random_features((9, 1), seed=1)
    assert float(mmd(a, b, RISK_GAMMAS)) == pytest.approx(loop_mmd(a, b, RISK_GAMMAS), abs=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_pairwise_coral_is_the_mean_over_pairs_of_moment_differences(shape: tuple[int, int, int]) -> None:
    features = random_features(shape)
    assert float(flat_coral(features)) == pytest.approx(loop_coral(list(features)), abs=1e-12)


def test_domains_of_different_size_in_any_order_and_absent_ones() -> None:
    features = random_features((14, 5))
    d = torch.tensor([0, 3, 3, 0, 1, 1, 1, 0, 3, 1, 1, 3, 0, 1])  # domain 2 has no sample, 4 neither
    parts = [features[d == k] for k in (0, 1, 3)]
    expected = np.mean([loop_mmd(a, b, MMD_GAMMAS) for a, b in itertools.combinations(parts, 2)])
    assert float(pairwise_mmd(features, d, 5)) == pytest.approx(expected, abs=1e-12)
    assert float(pairwise_coral(features, d, 5)) == pytest.approx(loop_coral(parts), abs=1e-12)


@pytest.mark.parametrize("penalty", [flat_coral, flat_mmd])
def test_gradients_are_right_also_where_samples_coincide(penalty: object) -> None:
    assert callable(penalty)
    features = random_features((3, 4, 2))
    features[0, 1] = features[0, 0]
    features[1, 2] = features[0, 0]
    assert torch.autograd.gradcheck(penalty, features.requires_grad_())


@pytest.mark.parametrize("penalty", [flat_coral, flat_mmd])
def test_equal_domains_and_one_domain_cost_nothing(penalty: object) -> None:
    assert callable(penalty)
    one = random_features((1, 6, 4))
    assert float(penalty(one)) == 0
    assert float(penalty(one.expand(3, 6, 4))) == pytest.approx(0, abs=1e-14)


def test_distances_against_scipy_and_exact_zeros_far_from_the_origin() -> None:
    x = random_features((5, 7)) + 1e6
    squared = squared_distances(x, x)
    torch.testing.assert_close(squared, torch.from_numpy(cdist(x.numpy(), x.numpy(), "sqeuclidean")))
    assert torch.equal(squared_distances(x.float(), x.float()).diagonal(), torch.zeros(5))


def test_half_precision_is_computed_in_float32() -> None:
    features = random_features((3, 4, 5)).bfloat16()
    for penalty in (flat_coral, flat_mmd):
        assert penalty(features).dtype == torch.float32
        torch.testing.assert_close(penalty(features), penalty(features.float()))


def loop_class_kernel(x: Tensor) -> Tensor:
    squared = torch.stack([((x - row) ** 2).sum(1) for row in x])
    kernel = torch.exp(-squared / (2 * squared[squared > 0].median()))
    center = torch.eye(len(x), dtype=x.dtype) - 1 / len(x)
    return center @ kernel @ center


def loop_hsic(a: Tensor, b: Tensor, y: Tensor, classes: int) -> Tensor:
    rows = []
    for a_d, b_d, y_d in zip(a, b, y, strict=True):
        total = torch.zeros((), dtype=a.dtype)
        for k in range(classes):
            mask = y_d == k
            if int(mask.sum()) >= 2:
                total = total + (loop_class_kernel(a_d[mask]) * loop_class_kernel(b_d[mask])).sum()
        rows.append(total)
    return torch.stack(rows)


def draw(domains: int, n: int, classes: int) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(n + classes)
    a = torch.randn(domains, n, 3, generator=generator, dtype=torch.float64)
    b = torch.randn(domains, n, 4, generator=generator, dtype=torch.float64)
    return a, b, torch.randint(classes, (domains, n), generator=generator)


@pytest.mark.parametrize(("domains", "n", "classes"), [(2, 2, 2), (3, 8, 5), (5, 9, 3), (2, 20, 65), (3, 6, 1)])
def test_value_and_gradient(domains: int, n: int, classes: int) -> None:
    a, b, y = draw(domains, n, classes)
    a.requires_grad_()
    b.requires_grad_()
    weights = torch.arange(1.0, domains + 1, dtype=torch.float64)
    actual, expected = class_hsic(a, b, y, classes), loop_hsic(a, b, y, classes)
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-11)
    if expected.requires_grad:
        for got, wanted in zip(
            torch.autograd.grad((weights * actual).sum(), (a, b)),
            torch.autograd.grad((weights * expected).sum(), (a, b)),
            strict=True,
        ):
            torch.testing.assert_close(got, wanted, rtol=0, atol=1e-11)


def test_medians_leave_out_zero_distances() -> None:
    x = torch.tensor([[[0.0], [0.0], [1.0], [3.0], [7.0], [7.0]]])
    y = torch.tensor([[0, 0, 0, 0, 2, 2]])
    # Class 0: pairs at 0 (left out), 1, 1, 4, 9, 9: the lower median is 4. Class 2: one pair, at 0. Class 1: none.
    assert class_medians(squared_distances(x, x), y, 3).tolist() == [[4.0, 1.0, 1.0]]


def test_coinciding_samples_contribute_nothing_and_have_finite_gradients() -> None:
    a, b, y = draw(2, 6, 3)
    a[:] = 1.0
    a.requires_grad_()
    total = class_hsic(a, b, y, 3).sum()
    (gradient,) = torch.autograd.grad(total, a)
    assert float(total.detach()) == pytest.approx(0, abs=1e-15)
    assert bool(gradient.isfinite().all())


def test_classes_present() -> None:
    assert classes_present(torch.tensor([[0, 0, 2], [1, 1, 1]]), 4).tolist() == [2, 1]

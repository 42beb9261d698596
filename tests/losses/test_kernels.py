"""Kernels, MMD and CORAL against plain loops."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist
from torch import Tensor

from longshift.losses.kernels import MMD_GAMMAS, RISK_GAMMAS, mmd, pairwise_mmd, squared_distances
from longshift.losses.moments import pairwise_coral

SHAPES = [(2, 2, 3), (3, 8, 12), (5, 5, 2), (4, 3, 40)]


def random_features(shape: tuple[int, ...], seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def loop_kernel(a: Tensor, b: Tensor, gammas: tuple[float, ...]) -> float:
    values = [sum(np.exp(-g * float(((x - y) ** 2).sum())) for g in gammas) for x in a for y in b]
    return float(np.mean(values))


def loop_mmd(a: Tensor, b: Tensor, gammas: tuple[float, ...]) -> float:
    return loop_kernel(a, a, gammas) + loop_kernel(b, b, gammas) - 2 * loop_kernel(a, b, gammas)


@pytest.mark.parametrize("shape", SHAPES)
def test_pairwise_mmd_is_the_mean_over_pairs(shape: tuple[int, int, int]) -> None:
    features = random_features(shape)
    expected = np.mean([loop_mmd(a, b, MMD_GAMMAS) for a, b in itertools.combinations(features, 2)])
    assert float(pairwise_mmd(features)) == pytest.approx(expected, abs=1e-12)


def test_mmd_of_samples_of_different_size() -> None:
    a, b = random_features((4, 1)), random_features((9, 1), seed=1)
    assert float(mmd(a, b, RISK_GAMMAS)) == pytest.approx(loop_mmd(a, b, RISK_GAMMAS), abs=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_pairwise_coral_is_the_mean_over_pairs_of_moment_differences(shape: tuple[int, int, int]) -> None:
    features = random_features(shape).numpy()
    covariances = [np.atleast_2d(np.cov(x, rowvar=False)) for x in features]
    means = [x.mean(0) for x in features]
    expected = np.mean(
        [
            ((means[i] - means[j]) ** 2).mean() + ((covariances[i] - covariances[j]) ** 2).mean()
            for i, j in itertools.combinations(range(len(features)), 2)
        ]
    )
    assert float(pairwise_coral(torch.from_numpy(features))) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("penalty", [pairwise_coral, pairwise_mmd])
def test_gradients_are_right_also_where_samples_coincide(penalty: object) -> None:
    assert callable(penalty)
    features = random_features((3, 4, 2))
    features[0, 1] = features[0, 0]
    features[1, 2] = features[0, 0]
    assert torch.autograd.gradcheck(penalty, features.requires_grad_())


@pytest.mark.parametrize("penalty", [pairwise_coral, pairwise_mmd])
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
    for penalty in (pairwise_coral, pairwise_mmd):
        assert penalty(features).dtype == torch.float32
        torch.testing.assert_close(penalty(features), penalty(features.float()))

"""Squared distances, sums of Gaussian kernels, and the maximum mean discrepancy (MMD) built from them."""

from __future__ import annotations

import torch
from torch import Tensor

from longshift.losses.domain_groups import mean_over_pairs, membership, squared_gaps
from longshift.losses.precision import full_precision

MMD_GAMMAS = tuple(10.0**p for p in range(-3, 4))  # of features (Li et al. 2018, as published in DomainBed)
RISK_GAMMAS = tuple(10.0**p for p in range(-4, 4))  # of per-sample losses (RDM)


@full_precision
def squared_distances(a: Tensor, b: Tensor) -> Tensor:
    """Compute squared Euclidean distances of rows, (..., n, F) and (..., m, F) -> (..., n, m).

    They come from differences, not from inner products, so equal rows have distance exactly 0, whatever the precision
    of matrix products.
    """
    # cdist gives a distance of 0 the gradient 0, so the gradient of the square is correct everywhere.
    return torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist").square()


def gaussian_kernels(squared: Tensor, gammas: tuple[float, ...]) -> Tensor:
    """Compute the sum over gammas of exp(-gamma * squared distance); distances are clamped at 1e-30, as published."""
    squared = squared.clamp_min(1e-30)
    total = torch.exp(-gammas[0] * squared)
    for gamma in gammas[1:]:  # a running sum keeps one matrix, not one per gamma
        total = total + torch.exp(-gamma * squared)
    return total


@full_precision
def mmd(a: Tensor, b: Tensor, gammas: tuple[float, ...] = MMD_GAMMAS) -> Tensor:
    """Compute the squared maximum mean discrepancy of two samples; the biased estimate, with the diagonal.

    Args:
        a: Features (n, F).
        b: Features (m, F).
        gammas: Coefficients of the Gaussian kernels, which are summed.

    Returns:
        A scalar.

    Example:
        >>> import torch
        >>> x = torch.tensor([[0.0], [1.0]])
        >>> float(mmd(x, x))
        0.0
    """
    k_aa = gaussian_kernels(squared_distances(a, a), gammas).mean()
    k_bb = gaussian_kernels(squared_distances(b, b), gammas).mean()
    k_ab = gaussian_kernels(squared_distances(a, b), gammas).mean()
    return k_aa + k_bb - 2 * k_ab


@full_precision
def pairwise_mmd(features: Tensor, d: Tensor, domains: int, gammas: tuple[float, ...] = MMD_GAMMAS) -> Tensor:
    """Compute the mean squared MMD over pairs of domains.

    Args:
        features: Features (B, F).
        d: Domains (B,).
        domains: Number of domains.
        gammas: Coefficients of the Gaussian kernels, which are summed.

    Returns:
        A scalar; 0 for one domain.

    Example:
        >>> import torch
        >>> x, y = torch.randn(8, 4), torch.arange(8) % 2
        >>> d = torch.arange(2).repeat_interleave(4)

        >>> bool(pairwise_mmd(x + 3 * d[:, None], d, domains=2) > pairwise_mmd(x, d, domains=2))
        True
    """
    member = membership(d, domains)
    kernel = gaussian_kernels(squared_distances(features, features), gammas)
    sizes = member.sum(1)
    share = member.to(kernel.dtype) / sizes.clamp_min(1)[:, None]
    return mean_over_pairs(squared_gaps(share @ kernel @ share.T), sizes > 0)

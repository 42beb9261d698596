"""Squared distances and Gaussian kernels; the maximum mean discrepancy (MMD) and HSIC built from them."""

from __future__ import annotations

import torch
from torch import Tensor

from longshift.losses.common import full_precision, indicator, mean_over_pairs, membership, squared_gaps

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


def class_medians(squared: Tensor, y: Tensor, classes: int) -> Tensor:
    """Compute the lower median of the non-zero squared distances within each class, (D, n, n), (D, n) -> (D, K).

    Differentiable; 1 for a class without such a distance. Shapes are static: sort all pairs by distance, then stably
    by class, and read the middle of each class.
    """
    distances = squared.flatten(1)
    same = y[:, :, None] == y[:, None, :]
    # Both orders of a pair are in the list; doubling every entry does not change the lower median.
    usable = (same & (squared.detach() > 0)).flatten(1)
    key = torch.where(usable, y[:, :, None].expand_as(squared).flatten(1), classes)
    by_distance = distances.detach().argsort(1)
    by_class = key.gather(1, by_distance).argsort(dim=1, stable=True)
    order = by_distance.gather(1, by_class)
    keys = key.gather(1, order)
    names = torch.arange(classes, device=y.device).expand(len(y), classes).contiguous()
    first = torch.searchsorted(keys, names)
    count = torch.searchsorted(keys, names, right=True) - first
    middle = (first + (count - 1).clamp_min(0) // 2).clamp_max(keys.shape[1] - 1)
    medians = distances.gather(1, order.gather(1, middle))
    return torch.where(count > 0, medians, torch.ones_like(medians))


def _centered_kernel(x: Tensor, y: Tensor, classes: int) -> Tensor:
    """Compute Gaussian kernels, doubly centered within each class, 0 between classes; (D, n, F) -> (D, n, n)."""
    squared = squared_distances(x, x)
    same = (y[:, :, None] == y[:, None, :]).to(squared.dtype)
    # Each sample has the scale of its class. A masked sum, because the gradient of indexing is not deterministic.
    scale = (class_medians(squared, y, classes)[:, None, :] * indicator(y, classes, squared.dtype)).sum(-1)
    kernel = torch.exp(-squared / (2 * scale[:, :, None])) * same
    size = same.sum(-1)
    rows = kernel.sum(-1) / size
    whole = (same * rows[:, None, :]).sum(-1) / size
    return (kernel - rows[:, :, None] - rows[:, None, :] + whole[:, :, None]) * same


@full_precision
def class_hsic(a: Tensor, b: Tensor, y: Tensor, classes: int) -> Tensor:
    """Compute per domain the sum over classes of HSIC(a, b | class).

    HSIC is the sum of the elementwise product of the doubly centered kernels, without normalization. A class with one
    sample contributes 0.

    Args:
        a: Features (D, n, F).
        b: Features (D, n, G).
        y: Classes (D, n).
        classes: Number of classes.

    Returns:
        A number per domain (D,).

    Example:
        >>> import torch
        >>> a, y = torch.randn(2, 6, 4), torch.arange(6).repeat(2, 1) % 2
        >>> class_hsic(a, a[..., :3], y, classes=2).shape
        torch.Size([2])
    """
    return (_centered_kernel(a, y, classes) * _centered_kernel(b, y, classes)).sum((1, 2))


def classes_present(y: Tensor, classes: int) -> Tensor:
    """Count the distinct classes in each row, (D, n) -> (D,)."""
    return indicator(y, classes, torch.int64).amax(1).sum(1)

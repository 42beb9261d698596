"""HSIC of two feature sets within each class, with median-heuristic Gaussian kernels (TCRI)."""

from __future__ import annotations

import torch
from torch import Tensor

from longshift.losses.kernels import squared_distances
from longshift.losses.labels import indicator
from longshift.losses.precision import full_precision


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

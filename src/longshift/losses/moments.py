"""CORAL: match the means and covariances of features between domains (Sun and Saenko 2016)."""

from __future__ import annotations

from torch import Tensor

from longshift.losses.domain_groups import mean_over_pairs, membership, squared_gaps
from longshift.losses.precision import full_precision


@full_precision
def pairwise_coral(features: Tensor, d: Tensor, domains: int) -> Tensor:
    """Compute the mean CORAL distance over pairs of domains.

    The distance of two domains is the mean squared difference of their feature means plus the mean squared
    difference of their covariances (divisor n - 1). Covariances are never formed: with centered rows X_i,
    <C_i, C_j> = |X_i X_j^T|^2 / ((n_i - 1) (n_j - 1)), so inner products of samples are enough (96 x 96 numbers
    instead of 3 x 2048 x 2048 for ResNet-50).

    Args:
        features: Features (B, F).
        d: Domains (B,).
        domains: Number of domains.

    Returns:
        A scalar; 0 for one domain.

    Example:
        >>> import torch
        >>> x, y = torch.randn(8, 4), torch.arange(8) % 2
        >>> d = torch.arange(2).repeat_interleave(4)

        >>> bool(pairwise_coral(x + 3 * d[:, None], d, domains=2) > pairwise_coral(x, d, domains=2))
        True
    """
    member = membership(d, domains)
    sizes, rows, width = member.sum(1), member.to(features.dtype), features.shape[1]
    means = (rows / sizes.clamp_min(1)[:, None]) @ features
    centered = features - rows.T @ means
    freedom = rows / (sizes - 1).clamp_min(1)[:, None]
    covariance = squared_gaps(freedom @ (centered @ centered.T).square() @ freedom.T) / width**2
    mean = (means[:, None] - means[None, :]).square().sum(2) / width
    return mean_over_pairs(mean + covariance, sizes > 0)

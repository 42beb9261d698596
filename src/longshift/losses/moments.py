"""CORAL: match the means and covariances of features between domains (Sun and Saenko 2016)."""

from __future__ import annotations

from torch import Tensor

from longshift.losses.precision import full_precision


@full_precision
def pairwise_coral(features: Tensor) -> Tensor:
    """Compute the mean CORAL distance over pairs of domains; features (D, n, F). One domain gives 0.

    The distance of two domains is the mean squared difference of their feature means plus the mean squared
    difference of their covariances (divisor n - 1). Covariances are never formed: with centered rows X_i,
    <C_i, C_j> = |X_i X_j^T|^2 / (n - 1)^2, so inner products of samples are enough (96 x 96 numbers instead
    of 3 x 2048 x 2048 for ResNet-50).
    """
    domains, n, width = features.shape
    means = features.mean(1)
    centered = (features - means[:, None]).flatten(0, 1)
    products = (centered @ centered.T).square().reshape(domains, n, domains, n).sum((1, 3))
    inner = products / max(n - 1, 1) ** 2  # (D, D): <C_i, C_j>
    own = inner.diagonal()
    covariance = (own[:, None] + own[None, :] - 2 * inner).sum() / width**2
    mean = (means[:, None] - means[None, :]).square().sum() / width
    # Each unordered pair appears twice in both sums, pairs (i, i) contribute 0.
    return (mean + covariance) / max(domains * (domains - 1), 1)

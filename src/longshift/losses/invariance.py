"""Penalties on differences of a risk or its gradient between domains (IRM, Fishr, VREx)."""

from __future__ import annotations

import torch
from torch import Tensor

from longshift.losses.domain_groups import domain_means, mean_of_present, membership
from longshift.losses.labels import indicator
from longshift.losses.precision import full_precision


@full_precision
def scale_gradients(logits: Tensor, y: Tensor) -> Tensor:
    """Compute the derivative of cross-entropy with respect to a factor on the logits, at 1; (..., K) -> (...).

    The closed form sum_k p_k z_k - z_y avoids a second backward pass.
    """
    expected = (logits.softmax(-1) * logits).sum(-1)
    return expected - logits.gather(-1, y.unsqueeze(-1)).squeeze(-1)


@full_precision
def irm_penalty(logits: Tensor, y: Tensor, d: Tensor, domains: int) -> Tensor:
    """Compute the IRM penalty of each domain.

    It is the product of the mean derivatives over even and odd samples of the domain: an unbiased estimate of the
    squared
    derivative, which can be negative.

    Args:
        logits: Logits (B, K).
        y: Classes (B,).
        d: Domains (B,).
        domains: Number of domains.

    Returns:
        Penalties (domains,); 0 for a domain with fewer than two samples.

    Example:
        >>> import torch
        >>> x, y = torch.randn(8, 2), torch.arange(8) % 2
        >>> d = torch.arange(2).repeat_interleave(4)

        >>> irm_penalty(x, y, d, domains=2).shape
        torch.Size([2])
    """
    member = membership(d, domains)
    even = member.cumsum(1) % 2 == 1  # the first sample of a domain is number 0
    gradients = scale_gradients(logits, y)
    return domain_means(gradients, member & even) * domain_means(gradients, member & ~even)


@full_precision
def head_gradient_variance(features: Tensor, logits: Tensor, y: Tensor, member: Tensor | None = None) -> Tensor:
    """Compute per domain the variance over samples of the gradient of cross-entropy for a linear head.

    A sample's gradient is the outer product of e = softmax - onehot and f, so both moments are matrix products,
    sum e f^T and sum e^2 (f^2)^T, and no gradient per sample is stored.

    Args:
        features: Features (D, n, F); with `member`, one batch (B, F) for all domains.
        logits: Logits (D, n, K); with `member`, (B, K).
        y: Classes (D, n); with `member`, (B,).
        member: Marks the samples of each domain (D, B), where domains have different numbers of samples.

    Returns:
        Variances (D, K * F + K): of the weights (row by row), then of the biases.

    Example:
        >>> import torch
        >>> head_gradient_variance(torch.randn(2, 5, 4), torch.randn(2, 5, 3), torch.randint(3, (2, 5))).shape
        torch.Size([2, 15])
    """
    error = (logits.softmax(-1) - indicator(y, logits.shape[-1], logits.dtype)).mT  # (D, K, n)
    ones = torch.ones_like(features[..., :1])
    n: int | Tensor = features.shape[-2]
    if member is not None:
        error = error * member[:, None]
        n = member.sum(1).clamp_min(1)[:, None, None]

    def moments(f: Tensor) -> Tensor:
        mean = error @ f / n
        return (error.square() @ f.square() / n - mean.square()).flatten(1)

    # The bias is the weight of a constant feature.
    return torch.cat([moments(features), moments(ones)], 1)


@full_precision
def spread(values: Tensor, present: Tensor | None = None) -> Tensor:
    """Compute the population variance over domains, averaged over columns.

    Args:
        values: A number or a row per domain: (D,) or (D, M).
        present: Marks the domains to use (D,); by default all.

    Returns:
        A scalar.

    Example:
        >>> import torch
        >>> float(spread(torch.tensor([1.0, 3.0])))
        1.0
    """
    if present is None:
        return (values - values.mean(0, keepdim=True)).square().mean()
    return mean_of_present((values - mean_of_present(values, present)).square(), present).mean()

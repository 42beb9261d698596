"""Losses for class imbalance. Counts of 0 (a class that a domain lacks) have a defined, finite meaning."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from longshift.losses.labels import indicator
from longshift.losses.precision import full_precision


@full_precision
def focal_loss(logits: Tensor, y: Tensor, gamma: float) -> Tensor:
    """Compute the focal loss (1 - p_y)^gamma * cross-entropy per sample.

    Args:
        logits: Logits (B, K).
        y: Classes (B,).
        gamma: 0 is cross-entropy; the larger, the less easy samples count.

    Returns:
        Losses (B,).

    Example:
        >>> import torch
        >>> logits, y = torch.tensor([[2.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 1])
        >>> bool((focal_loss(logits, y, 2.0) < focal_loss(logits, y, 0.0)).all())
        True
    """
    risk = cross_entropy(logits, y, reduction="none")
    # 1 - p_y without cancellation; clamped above 0, where the power has no gradient for gamma < 1.
    miss = (-torch.expm1(-risk)).clamp_min(torch.finfo(risk.dtype).tiny)
    return miss**gamma * risk


def inverse_frequency(counts: Tensor) -> Tensor:
    """Compute weights that are inverse to the class counts.

    Args:
        counts: Training samples (D, K), a row per domain.

    Returns:
        Weights (D, K); each row sums to the number of classes. A class with count 0 gets the weight of a class with
        count 1.

    Example:
        >>> import torch
        >>> inverse_frequency(torch.tensor([[30.0, 10.0]])).round(decimals=3).tolist()
        [[0.5, 1.5]]
    """
    weights = 1 / counts.clamp_min(1)
    return weights * (counts.shape[-1] / weights.sum(-1, keepdim=True))


def log_prior(counts: Tensor) -> Tensor:
    """Compute log counts to add to logits (balanced softmax).

    Args:
        counts: Training samples, (K,) or (D, K).

    Returns:
        Logarithms of the same shape. A class with count 0 gets log of the smallest normal float32 (-87.3): it does not
        enter
        the softmax of that domain, as with log 0, but a sample of it has a large finite loss instead of an infinite
        one.

    Example:
        >>> import torch
        >>> log_prior(torch.tensor([1.0, 0.0])).round(decimals=1).tolist()
        [0.0, -87.30000305175781]
    """
    return counts.clamp_min(torch.finfo(torch.float32).tiny).log()


def shift_logits(logits: Tensor, log_counts: Tensor, d: Tensor | None) -> Tensor:
    """Add log counts to logits.

    Args:
        logits: Logits (B, K).
        log_counts: Log counts (rows, K), as `log_prior` returns them.
        d: Domain of each sample (B,), which chooses the row; None if there is one row.

    Returns:
        Logits (B, K).

    Example:
        >>> import torch
        >>> shift_logits(torch.zeros(1, 2), torch.tensor([[0.0, 1.0], [2.0, 3.0]]), torch.tensor([1])).tolist()
        [[2.0, 3.0]]
    """
    return logits + (log_counts if d is None or len(log_counts) == 1 else log_counts[d])


def ldam_margins(counts: Tensor, largest: float) -> Tensor:
    """Compute margins proportional to count^(-1/4).

    Args:
        counts: Training samples (D, K), a row per domain.
        largest: The largest margin of each row.

    Returns:
        Margins (D, K). A class with count 0 gets the largest margin and does not affect the others.

    Example:
        >>> import torch
        >>> ldam_margins(torch.tensor([[16.0, 1.0]]), 0.5).tolist()
        [[0.25, 0.5]]
    """
    present = counts > 0
    raw = torch.where(present, counts.clamp_min(1) ** -0.25, 0)
    top = raw.amax(-1, keepdim=True).clamp_min(torch.finfo(raw.dtype).tiny)
    return torch.where(present, largest * raw / top, largest)


@full_precision
def margin_loss(logits: Tensor, y: Tensor, margins: Tensor, scale: float) -> Tensor:
    """Compute cross-entropy of scale * (logits - margin of the true class) per sample.

    Args:
        logits: Logits (B, K).
        y: Classes (B,).
        margins: Margin of the true class of each sample (B,).
        scale: Factor on the logits.

    Returns:
        Losses (B,).

    Example:
        >>> import torch
        >>> logits, y = torch.tensor([[2.0, 0.0]]), torch.tensor([0])
        >>> bool(margin_loss(logits, y, torch.tensor([0.5]), 1.0) > margin_loss(logits, y, torch.tensor([0.0]), 1.0))
        True
    """
    lowered = logits - margins[:, None] * indicator(y, logits.shape[-1], logits.dtype)
    return cross_entropy(scale * lowered, y, reduction="none")

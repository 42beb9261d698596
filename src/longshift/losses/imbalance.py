"""Losses for class imbalance. Counts of 0 (a class that a domain lacks) have a defined, finite meaning."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from longshift.losses.labels import indicator
from longshift.losses.precision import full_precision


@full_precision
def focal_loss(logits: Tensor, y: Tensor, gamma: float) -> Tensor:
    """Compute the focal loss (1 - p_y)^gamma * cross-entropy per sample, (B, K) -> (B,)."""
    risk = cross_entropy(logits, y, reduction="none")
    # 1 - p_y without cancellation; clamped above 0, where the power has no gradient for gamma < 1.
    miss = (-torch.expm1(-risk)).clamp_min(torch.finfo(risk.dtype).tiny)
    return miss**gamma * risk


def inverse_frequency(counts: Tensor) -> Tensor:
    """Compute weights 1 / count, each row scaled to sum to the number of classes, (D, K) -> (D, K).

    A class with count 0 gets the weight of a class with count 1.
    """
    weights = 1 / counts.clamp_min(1)
    return weights * (counts.shape[-1] / weights.sum(-1, keepdim=True))


def log_prior(counts: Tensor) -> Tensor:
    """Compute log counts to add to logits (balanced softmax).

    A class with count 0 gets log of the smallest normal float32 (-87.3): it does not enter the softmax of
    that domain, as with log 0, but a sample of it has a large finite loss instead of an infinite one.
    """
    return counts.clamp_min(torch.finfo(torch.float32).tiny).log()


def shift_logits(logits: Tensor, log_counts: Tensor, d: Tensor | None) -> Tensor:
    """Add log counts (rows, K) to logits (B, K): those of the sample's domain d, or the only row."""
    return logits + (log_counts if d is None or len(log_counts) == 1 else log_counts[d])


def ldam_margins(counts: Tensor, largest: float) -> Tensor:
    """Compute margins proportional to count^(-1/4), each row scaled to the maximum `largest`, (D, K) -> (D, K).

    A class with count 0 gets the largest margin and does not affect the others.
    """
    present = counts > 0
    raw = torch.where(present, counts.clamp_min(1) ** -0.25, 0)
    top = raw.amax(-1, keepdim=True).clamp_min(torch.finfo(raw.dtype).tiny)
    return torch.where(present, largest * raw / top, largest)


@full_precision
def margin_loss(logits: Tensor, y: Tensor, margins: Tensor, scale: float) -> Tensor:
    """Compute cross-entropy of scale * (logits - margin of the true class) per sample, (B, K), (B,), (B,) -> (B,)."""
    lowered = logits - margins[:, None] * indicator(y, logits.shape[-1], logits.dtype)
    return cross_entropy(scale * lowered, y, reduction="none")

"""Losses for class imbalance as modules; the counts are those of all domains together, or of each domain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from longshift.losses.choices import check
from longshift.losses.domain_groups import membership, weighted_domain_mean
from longshift.losses.imbalance import (
    focal_loss,
    inverse_frequency,
    ldam_margins,
    log_prior,
    margin_loss,
    shift_logits,
)
from longshift.losses.precision import upcast

Counts = Tensor | Sequence[Any] | npt.NDArray[Any]
SampleReduction = Literal["mean", "sum", "none"]
SAMPLE_REDUCTIONS: tuple[SampleReduction, ...] = ("mean", "sum", "none")


def reduce_samples(losses: Tensor, reduction: SampleReduction) -> Tensor:
    """Reduce losses (B,) as the losses of PyTorch do."""
    if reduction == "none":
        return losses
    return losses.mean() if reduction == "mean" else losses.sum()


def count_rows(class_counts: Counts) -> Tensor:
    """Return counts as (rows, classes): one row per domain, or one row for all domains.

    Raises:
        ValueError: If the shape or a count is invalid.
    """
    counts = torch.as_tensor(class_counts)
    if counts.dim() not in (1, 2) or counts.shape[-1] < 1 or counts.shape[0] < 1:
        raise ValueError(
            f"Expected `class_counts` of shape (classes,) or (domains, classes), but got {tuple(counts.shape)}."
        )
    if bool((counts < 0).any()) or not bool(counts.isfinite().all()):
        raise ValueError("Expected `class_counts` of at least 0 and finite, but got others.")
    if counts.is_floating_point() and bool((counts == counts.round()).all()):
        counts = counts.to(torch.int64)  # `module.bfloat16()` would round them as floating-point numbers
    return counts.reshape(-1, counts.shape[-1])


class CountLoss(nn.Module):
    """The base of losses that need the training counts of the classes."""

    class_counts: Tensor  # (rows, classes); whole counts are exact in any precision; derived numbers use the logits'

    def __init__(self, class_counts: Counts) -> None:
        super().__init__()
        # Not persistent, because they are given again when the loss is built.
        self.register_buffer("class_counts", count_rows(class_counts), persistent=False)

    def check_inputs(self, logits: Tensor, d: Tensor | None) -> None:
        """Raise where the shapes do not fit the counts; reads no tensor on the host."""
        rows, classes = self.class_counts.shape
        if logits.dim() != 2 or logits.shape[1] != classes:
            raise ValueError(f"Expected logits of shape (B, {classes}), as the counts have, but got {logits.shape}.")
        if d is None and rows > 1:
            raise ValueError(f"Expected the domains `d` of the samples, because the counts have {rows} rows.")

    def of_samples(self, table: Tensor, y: Tensor, d: Tensor | None) -> Tensor:
        """Return the entries (B,) of a table (rows, classes) for classes y and domains d."""
        return table[0, y] if d is None or len(table) == 1 else table[d, y]


class BalancedSoftmaxLoss(CountLoss):
    """Balanced softmax (Ren et al. 2020, arXiv:2007.10740): cross-entropy of logits + log counts.

    Args:
        class_counts: Training samples, (classes,) for all domains together or (domains, classes) for each domain. A
            class with count 0 does not enter the softmax of that domain.
        reduction: "mean", "sum" or "none".

    Raises:
        ValueError: If an option or a shape is invalid.

    Example:
        >>> criterion = BalancedSoftmaxLoss([[90, 10], [50, 50]])
        >>> criterion(torch.zeros(2, 2), torch.tensor([1, 1]), torch.tensor([0, 1])).item()  # (ln 10 + ln 2) / 2
        1.4978...
    """

    def __init__(self, class_counts: Counts, *, reduction: SampleReduction = "mean") -> None:
        super().__init__(class_counts)
        check("reduction", reduction, SAMPLE_REDUCTIONS)
        self.reduction: SampleReduction = reduction

    def forward(self, logits: Tensor, y: Tensor, d: Tensor | None = None) -> Tensor:
        """Compute the loss of logits (B, K), classes y (B,) and, with counts per domain, domains d (B,)."""
        self.check_inputs(logits, d)
        logits = upcast(logits)
        shifted = shift_logits(logits, log_prior(self.class_counts.to(logits.dtype)), d)
        return cross_entropy(shifted, y, reduction=self.reduction)


class LDAMLoss(CountLoss):
    """Label-distribution-aware margins (Cao et al. 2019, arXiv:1906.07413): margins proportional to count^(-1/4).

    Args:
        class_counts: Training samples, (classes,) for all domains together or (domains, classes) for each domain. A
            class with count 0 has the largest margin and does not affect the others.
        max_margin: The largest margin, in each domain.
        scale: Factor on the logits.
        reduction: "mean", "sum" or "none".

    Raises:
        ValueError: If an option or a shape is invalid.

    Example:
        >>> criterion = LDAMLoss([16, 1], max_margin=0.5, scale=1.0)
        >>> criterion(torch.zeros(1, 2), torch.tensor([0])).item()  # margin 1/4: ln(1 + e^(1/4))
        0.8259...
    """

    def __init__(
        self,
        class_counts: Counts,
        *,
        max_margin: float = 0.5,
        scale: float = 30.0,
        reduction: SampleReduction = "mean",
    ) -> None:
        super().__init__(class_counts)
        check("reduction", reduction, SAMPLE_REDUCTIONS)
        if max_margin < 0 or scale < 0:
            raise ValueError(f"Expected `max_margin` and `scale` of at least 0, but got {max_margin} and {scale}.")
        self.max_margin, self.scale = max_margin, scale
        self.reduction: SampleReduction = reduction

    def forward(self, logits: Tensor, y: Tensor, d: Tensor | None = None) -> Tensor:
        """Compute the loss of logits (B, K), classes y (B,) and, with counts per domain, domains d (B,)."""
        self.check_inputs(logits, d)
        logits = upcast(logits)
        margins = ldam_margins(self.class_counts.to(logits.dtype), self.max_margin)
        return reduce_samples(margin_loss(logits, y, self.of_samples(margins, y, d), self.scale), self.reduction)


class InverseFrequencyCE(CountLoss):
    """Cross-entropy weighted by inverse class frequency, as a weighted mean.

    With counts per domain, the weighted mean is taken in each domain of the batch, and these means are averaged. With
    counts of all domains together, it is taken over the whole batch, and `d` has no effect.

    Args:
        class_counts: Training samples, (classes,) for all domains together or (domains, classes) for each domain. A
            class with count 0 has the weight of a class with count 1.

    Raises:
        ValueError: If a shape is invalid.

    Example:
        >>> criterion = InverseFrequencyCE([30, 10])
        >>> logits = torch.tensor([[0.0, 0.0], [0.0, 2.0]])
        >>> criterion(logits, torch.tensor([0, 1])).item()  # (ln 2 * 1/4 + ln(1 + e^-2) * 3/4)
        0.2684...
    """

    def forward(self, logits: Tensor, y: Tensor, d: Tensor | None = None) -> Tensor:
        """Compute the loss of logits (B, K), classes y (B,) and, with counts per domain, domains d (B,)."""
        self.check_inputs(logits, d)
        losses = cross_entropy(upcast(logits), y, reduction="none")
        weights = self.of_samples(inverse_frequency(self.class_counts.to(losses.dtype)), y, d)
        rows = len(self.class_counts)
        member = membership(torch.zeros_like(y) if d is None or rows == 1 else d, rows)
        return weighted_domain_mean(losses, weights, member)


class FocalLoss(nn.Module):
    """Focal loss (Lin et al. 2017, arXiv:1708.02002): (1 - p)^gamma times cross-entropy.

    Args:
        gamma: How fast the weight of a sample decreases with its probability; 0 is cross-entropy.
        reduction: "mean", "sum" or "none".

    Raises:
        ValueError: If an option is invalid.

    Example:
        >>> FocalLoss(gamma=2.0)(torch.zeros(1, 2), torch.tensor([0])).item()  # ln 2 / 4
        0.1732...
    """

    def __init__(self, gamma: float = 1.0, *, reduction: SampleReduction = "mean") -> None:
        super().__init__()
        check("reduction", reduction, SAMPLE_REDUCTIONS)
        if gamma < 0:
            raise ValueError(f"Expected `gamma` of at least 0, but got {gamma}.")
        self.gamma = gamma
        self.reduction: SampleReduction = reduction

    def forward(self, logits: Tensor, y: Tensor) -> Tensor:
        """Compute the loss of logits (B, K) and classes y (B,)."""
        return reduce_samples(focal_loss(logits, y, self.gamma), self.reduction)

"""Losses for class imbalance. Counts of 0 (a class that a domain lacks) have a defined, finite meaning.

The counts of the modules are those of all domains together, or of each domain.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from longshift.losses.common import check, full_precision, indicator, membership, upcast, weighted_domain_mean


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


@full_precision
def maximum_square_loss(logits: Tensor) -> Tensor:
    """Compute -(1 / 2n) times the sum of squared probabilities.

    The gradient with respect to a probability is -p / n, so that confident samples of frequent classes do not outweigh
    all others, as they do with entropy.

    Args:
        logits: Logits (n, classes).

    Returns:
        A scalar.

    Example:
        >>> import torch
        >>> round(float(maximum_square_loss(torch.zeros(3, 2))), 4)
        -0.25
    """
    return -logits.softmax(1).square().sum(1).mean() / 2

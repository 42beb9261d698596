"""Prediction-central alignment (NDCL eq. align): one prototype per (domain, class), same classes attract.

There are never more prototypes than samples, so they are kept in a table with one row per sample: row i holds the
mean of sample i's own (domain, class), and `present` marks the first row of each. Shapes are static, and the cost
does not grow with classes times domains.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from torch import Tensor, nn

from longshift.losses.common import check, full_precision
from longshift.losses.contrastive import REDUCTIONS, Reduction, anchor_terms, cosine, others, reduce, same_class

Alignment = Literal["paper", "released"]
ALIGNMENTS: tuple[Alignment, ...] = ("paper", "released")


class Prototypes(NamedTuple):
    """Means (B, K), their classes (B,), and a mask of the rows that are prototypes (B,); other rows are duplicates."""

    mean: Tensor
    label: Tensor
    present: Tensor


@full_precision
def prototypes(predictions: Tensor, labels: Tensor, domains: Tensor) -> Prototypes:
    """Compute the mean prediction of each (domain, class) in the batch; see `Prototypes`."""
    group = same_class(labels) & same_class(domains)
    member = group.to(predictions.dtype)
    mean = (member / member.sum(1, keepdim=True)) @ predictions
    return Prototypes(mean, labels, ~group.tril(-1).any(1))


def _sets(labels: Tensor, present: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return masks of the positives and negatives of each prototype; rows that are not prototypes have and are none."""
    same = same_class(labels)
    positives, negatives = same & others(len(labels), labels.device), ~same
    if present is not None:
        pair = present[:, None] & present[None, :]
        positives, negatives = positives & pair, negatives & pair
    return positives, negatives


@full_precision
def align(means: Tensor, labels: Tensor, present: Tensor | None = None, *, reduction: Reduction = "mean") -> Tensor:
    """Compute eq. align on prototypes (n, K) with classes (n,); `present` is a mask of the rows to use.

    A prototype without a positive is skipped as an anchor but stays in the denominators of the others.
    """
    positives, negatives = _sets(labels, present)
    terms, valid = anchor_terms(cosine(means).exp(), positives, negatives, log_inside=True)
    return reduce(terms, valid, labels, reduction)


@full_precision
def align_released(means: Tensor, labels: Tensor, present: Tensor | None = None) -> Tensor:
    """Compute alignment as in the authors' code, which differs from eq. align.

    Each anchor's term is the log of the summed share of its positives. Terms are averaged within each class, then
    over classes. Prototypes without a positive are left out completely.
    """
    positives, negatives = _sets(labels, present)
    paired = positives.any(1)
    terms, valid = anchor_terms(cosine(means).exp(), positives, negatives & paired, averaged=False)
    return reduce(terms, valid, labels, "class")


@full_precision
def prototype_alignment(
    predictions: Tensor, labels: Tensor, domains: Tensor, *, reduction: Reduction = "mean", released: bool = False
) -> Tensor:
    """Compute eq. align of NDCL on the (domain, class) means of a batch.

    Args:
        predictions: Probabilities (B, K).
        labels: Classes (B,).
        domains: Domains (B,).
        reduction: Over the prototypes: "mean", "sum", "class" (mean of class means) or "none".
        released: Whether to use the authors' version.

    Returns:
        A scalar; with "none", a term per sample.

    Example:
        >>> import torch
        >>> p = torch.tensor([[0.9, 0.1], [0.2, 0.8], [0.8, 0.2], [0.1, 0.9]])
        >>> prototype_alignment(p, torch.tensor([0, 1, 0, 1]), torch.tensor([0, 0, 1, 1])).shape
        torch.Size([])
    """
    table = prototypes(predictions, labels, domains)
    return align_released(*table) if released else align(*table, reduction=reduction)


class PrototypeAlignment(nn.Module):
    """NDCL's alignment (arXiv:2601.21999, eq. align): class prototypes of different domains attract.

    Args:
        reduction: Over prototypes: "mean", "sum" or "class" (mean over classes of class means).
        alignment: "paper" for the equation, "released" for the authors' code, which always reduces by class.

    Raises:
        ValueError: If an option is invalid.

    Example:
        >>> import torch
        >>> align = PrototypeAlignment()
        >>> predictions = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
        >>> align(predictions, torch.tensor([0, 1, 0, 1]), torch.tensor([0, 0, 1, 1])).item()  # ln(e + 2) - 1
        0.5514...
    """

    def __init__(self, *, reduction: Reduction = "mean", alignment: Alignment = "paper") -> None:
        super().__init__()
        check("reduction", reduction, REDUCTIONS)
        check("alignment", alignment, ALIGNMENTS)
        self.reduction: Reduction = reduction
        self.alignment: Alignment = alignment

    def forward(self, predictions: Tensor, y: Tensor, d: Tensor) -> Tensor:
        """Compute the loss from predictions (B, K) (softmax of logits), classes y (B,) and domains d (B,)."""
        released = self.alignment == "released"
        return prototype_alignment(predictions, y, d, reduction=self.reduction, released=released)

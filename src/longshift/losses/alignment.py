"""Prediction-central alignment (NDCL eq. align): one prototype per (domain, class), same classes attract.

There are never more prototypes than samples, so they are kept in a table with one row per sample: row i holds the
mean of sample i's own (domain, class), and `present` marks the first row of each. Shapes are static, and the cost
does not grow with classes times domains.
"""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from longshift.losses.contrastive import Reduction, anchor_terms, cosine, others, reduce, same_class
from longshift.losses.precision import full_precision


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
    """Compute eq. align on the (domain, class) means of the batch; `released` uses the authors' version."""
    table = prototypes(predictions, labels, domains)
    return align_released(*table) if released else align(*table, reduction=reduction)

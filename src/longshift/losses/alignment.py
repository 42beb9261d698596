"""Prediction-central alignment (NDCL eq. align): one prototype per (domain, class), same classes attract.

There are at most as many prototypes as samples, however many classes there are. So they are kept in a table with
one row per sample: row i holds the mean of sample i's own (domain, class), and `present` marks the first row of
each. Shapes are then static, and the cost does not grow with classes times domains.
"""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from longshift.losses.contrast import Reduction, anchor_terms, cosine, others, reduce, same_class
from longshift.losses.precision import full_precision


class Prototypes(NamedTuple):
    """Means (B, K), their class (B,), and which rows are prototypes (B,); the other rows are repetitions."""

    mean: Tensor
    label: Tensor
    present: Tensor


@full_precision
def prototypes(predictions: Tensor, labels: Tensor, domains: Tensor) -> Prototypes:
    """Mean prediction of every (domain, class) in the batch, in the first row where it occurs."""
    group = same_class(labels) & same_class(domains)
    member = group.to(predictions.dtype)
    mean = (member / member.sum(1, keepdim=True)) @ predictions
    return Prototypes(mean, labels, ~group.tril(-1).any(1))


def _sets(labels: Tensor, present: Tensor | None) -> tuple[Tensor, Tensor]:
    """Positives and negatives of each prototype as masks; rows that are no prototypes have and are neither."""
    same = same_class(labels)
    positives, negatives = same & others(len(labels), labels.device), ~same
    if present is not None:
        pair = present[:, None] & present[None, :]
        positives, negatives = positives & pair, negatives & pair
    return positives, negatives


@full_precision
def align(means: Tensor, labels: Tensor, present: Tensor | None = None, *, reduction: Reduction = "mean") -> Tensor:
    """Eq. align on given prototypes (n, K) with their classes (n,); `present` masks rows out.

    A prototype without a positive is skipped as an anchor but stays in the others' denominators.
    """
    positives, negatives = _sets(labels, present)
    terms, valid = anchor_terms(cosine(means).exp(), positives, negatives, log_inside=True)
    return reduce(terms, valid, labels, reduction)


@full_precision
def align_released(means: Tensor, labels: Tensor, present: Tensor | None = None) -> Tensor:
    """The authors' code in place of eq. align.

    The log of the positives' summed share, each anchor divided by its class's number of prototypes, the sum by the
    number of classes; prototypes without a positive are left out of everything.
    """
    positives, negatives = _sets(labels, present)
    paired = positives.any(1)
    terms, valid = anchor_terms(cosine(means).exp(), positives, negatives & paired, averaged=False)
    return reduce(terms, valid, labels, "class")


@full_precision
def prototype_alignment(
    predictions: Tensor, labels: Tensor, domains: Tensor, *, reduction: Reduction = "mean", released: bool = False
) -> Tensor:
    """Eq. align on the batch's own (domain, class) means; `released` takes the authors' version of it."""
    table = prototypes(predictions, labels, domains)
    return align_released(*table) if released else align(*table, reduction=reduction)

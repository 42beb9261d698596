"""Hard-negative mining and mixup (NDCL eq. neg_aug), as index tensors of static shape.

For every class k in the batch, the quarter of its samples with the lowest p_k is paired with the samples of other
classes that have the highest p_k. The mined samples of all classes together are as many as the batch has samples.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor

from longshift.losses.choices import check
from longshift.losses.precision import full_precision

Share = Literal["inverse", "uniform", "released"]
SHARES: tuple[Share, ...] = ("inverse", "uniform", "released")


class Mined(NamedTuple):
    """For each mined sample: the low-confidence sample of its class, the hard negative, and the class itself.

    `cls` is -1 where the batch has one class only, so that no anchor takes the sample for its negative.
    """

    low: Tensor
    high: Tensor
    cls: Tensor


def batch_counts(labels: Tensor, classes: int) -> Tensor:
    """Samples of each class in the batch (classes,), int64."""
    counts = torch.zeros(classes, dtype=torch.int64, device=labels.device)
    return counts.scatter_add(0, labels, torch.ones_like(labels))


def _share_dtype(device: torch.device) -> torch.dtype:
    # Quotas that are whole numbers must not be moved over the next one by rounding; MPS has no float64.
    return torch.float32 if device.type == "mps" else torch.float64


def apportion(weights: Tensor, present: Tensor, total: int) -> Tensor:
    """Share `total` among the classes present in proportion to their weights, at least one each.

    Quotas are max(1, c * weight) with c such that they sum to `total`; whole numbers follow by the largest
    remainder (ties: lowest class first). Needs total >= classes present.
    """
    weights = torch.where(present, weights, 0.0)
    ordered = weights.sort(descending=True).values
    cumulative = ordered.cumsum(0)
    # If the j + 1 heaviest classes share what is left when all lighter ones get one each, does the lightest of
    # them still get one? That holds up to some j and for none after it.
    left = total - present.sum() + torch.arange(1, len(weights) + 1, device=weights.device)
    scale = left / cumulative
    sharing = (scale * ordered >= 1 - 1e-9).sum()
    # (gather, because indexing with a scalar tensor would read it on the host)
    quota = torch.where(present, (weights * scale.gather(0, sharing[None] - 1)).clamp(min=1), 0.0)
    whole = quota.floor()
    by_remainder = (quota - whole).argsort(descending=True, stable=True)
    rank = torch.empty_like(by_remainder).scatter(0, by_remainder, torch.arange(len(weights), device=weights.device))
    return whole.long() + (rank < total - whole.sum())


def mined_counts(counts: Tensor, total: int, share: Share = "inverse", class_counts: Tensor | None = None) -> Tensor:
    """How many samples to mine for each class (classes,), `total` in all, given the batch's own `counts`.

    "inverse" shares inversely to `class_counts` (training samples per class; by default the batch's counts),
    "uniform" equally, "released" in proportion to exp(n_k / n) of the batch, as the authors' code does.
    """
    check("share", share, SHARES)
    present = counts > 0
    dtype = _share_dtype(counts.device)
    if share == "released":
        grown = torch.where(present, (counts.to(dtype) / total).exp(), 0.0)
        # Cumulative and rounded up like the original; the small step back keeps rounding from adding a sample.
        steps = (grown.cumsum(0) * (total / grown.sum()) - 1e-4).ceil().long()
        return steps.diff(prepend=steps.new_zeros(1))
    if share == "uniform":
        return apportion(present.to(dtype), present, total)
    known = counts if class_counts is None else class_counts
    return apportion(1.0 / known.to(dtype).clamp(min=1), present, total)


@full_precision
def mine(
    probabilities: Tensor, labels: Tensor, class_counts: Tensor | None = None, *, share: Share = "inverse"
) -> Mined:
    """Choose the pairs to mix for a batch of B samples with probabilities (B, K): B of them, grouped by class.

    Pairs of a class run through its low quarter first and then to the next hard negative; where the other classes
    have too few samples the hard negatives start over. No gradient flows through the choice.
    """
    p = probabilities.detach()
    size, classes = p.shape
    counts = batch_counts(labels, classes)
    mined = mined_counts(counts, size, share, class_counts)
    ends = mined.cumsum(0)
    place = torch.arange(size, device=labels.device)
    cls = torch.searchsorted(ends, place, right=True)
    within = place - (ends - mined)[cls]

    if classes <= size:
        rows, row = torch.arange(classes, device=labels.device), cls
        by_class = p.T
    else:  # at most `size` classes are present: one row for each, whatever the number of classes
        seen = (counts > 0).cumsum(0)
        rows = torch.searchsorted(seen, place, right=True).clamp(max=classes - 1)
        row = (seen - 1)[cls]
        by_class = p.T[rows]
    # One sort for both ends: non-members first, highest p_k leading; then members, lowest p_k leading.
    member = rows[:, None] == labels[None, :]
    key = torch.where(member, by_class, -by_class - torch.finfo(p.dtype).tiny)
    order = key.sort(dim=1, stable=True).indices

    own = counts[cls]
    foreign = size - own
    quarter = (own + 3) // 4
    low = order[row, foreign + within % quarter]
    high = order[row, (within // quarter) % foreign.clamp(min=1)]
    return Mined(low, high, torch.where(foreign > 0, cls, -1))


def mix(x: Tensor, mined: Mined, lam: Tensor, *, lambda_max_half: bool = False) -> Tensor:
    """lam * x[low] + (1 - lam) * x[high]; lam (B,) or (1,). With `lambda_max_half`, lam becomes min(lam, 1 - lam)."""
    if lambda_max_half:
        lam = torch.minimum(lam, 1 - lam)
    lam = lam.to(x.dtype).reshape(-1, *[1] * (x.dim() - 1))
    return torch.lerp(x[mined.high], x[mined.low], lam)

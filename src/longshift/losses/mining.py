"""Hard-negative mining and mixup (NDCL eq. neg_aug), as index tensors of static shape.

For each class k in the batch, the quarter of its samples with the lowest p_k is paired with the samples of other
classes that have the highest p_k. The number of mined samples equals the batch size.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor

from longshift.losses.common import check, full_precision

Share = Literal["inverse", "uniform", "released"]
SHARES: tuple[Share, ...] = ("inverse", "uniform", "released")


class Mined(NamedTuple):
    """Per mined sample: the low-confidence sample of its class, the hard negative, and the class.

    `cls` is -1 if the batch has only one class, so that the sample is not a negative of any anchor.
    """

    low: Tensor
    high: Tensor
    cls: Tensor


def batch_counts(labels: Tensor, classes: int) -> Tensor:
    """Count the samples of each class in the batch, (classes,) int64."""
    counts = torch.zeros(classes, dtype=torch.int64, device=labels.device)
    return counts.scatter_add(0, labels, torch.ones_like(labels))


def _share_dtype(device: torch.device) -> torch.dtype:
    # float64, so that rounding does not push a whole quota over the next integer; MPS has no float64.
    return torch.float32 if device.type == "mps" else torch.float64


def apportion(weights: Tensor, present: Tensor, total: int) -> Tensor:
    """Distribute `total` among the present classes in proportion to their weights, at least one each.

    Quotas are max(1, c * weight) with c such that they sum to `total`. They are rounded by the largest remainder
    (ties: lowest class first). Requires total >= number of present classes.
    """
    weights = torch.where(present, weights, 0.0)
    ordered = weights.sort(descending=True).values
    cumulative = ordered.cumsum(0)
    # Give each lighter class one sample and distribute the rest among the j + 1 heaviest classes: up to some j, the
    # lightest of these still gets at least one.
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
    """Compute how many samples to mine per class, (classes,), `total` in all, given the `counts` of the batch.

    "inverse" is inverse to `class_counts` (training samples per class; by default the counts of the batch), "uniform"
    is equal, and "released" is proportional to exp(n_k / n) of the batch, as in the authors' code.
    """
    check("share", share, SHARES)
    present = counts > 0
    dtype = _share_dtype(counts.device)
    if share == "released":
        grown = torch.where(present, (counts.to(dtype) / total).exp(), 0.0)
        # Cumulative and rounded up as in the original; the small offset keeps rounding from adding a sample.
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
    """Choose pairs of samples to mix into hard negatives (eq. neg_aug of NDCL): as many as the batch has samples.

    Pairs of a class go through its low quarter first and then move to the next hard negative. If the other classes
    have too few samples, the hard negatives start over. No gradient flows through the choice.

    Args:
        probabilities: Probabilities (B, K).
        labels: Classes (B,).
        class_counts: Training samples per class (K,), for share "inverse"; by default those of the batch.
        share: How pairs are distributed over classes: "inverse", "uniform" or "released".

    Returns:
        The pairs, grouped by class.

    Example:
        >>> import torch
        >>> p, y = torch.tensor([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8], [0.45, 0.55]]), torch.tensor([0, 0, 1, 1])
        >>> mined = mine(p, y)

        >>> len(mined.low) == len(mined.high) == len(y)
        True
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
    else:  # at most `size` classes are present: one row per present class
        seen = (counts > 0).cumsum(0)
        rows = torch.searchsorted(seen, place, right=True).clamp(max=classes - 1)
        row = (seen - 1)[cls]
        by_class = p.T[rows]
    # One sort serves both: non-members first, by descending p_k, then members, by ascending p_k.
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
    """Mix the chosen pairs: lam * x[low] + (1 - lam) * x[high].

    Args:
        x: Inputs (B, ...).
        mined: What `mine` returned.
        lam: Mixing coefficients (B,) or (1,).
        lambda_max_half: Whether to use min(lam, 1 - lam).

    Returns:
        Mixed inputs (B, ...).

    Example:
        >>> import torch
        >>> p, y = torch.tensor([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8], [0.45, 0.55]]), torch.tensor([0, 0, 1, 1])
        >>> mined = mine(p, y)

        >>> mix(torch.rand(4, 3), mined, torch.full((4,), 0.3)).shape
        torch.Size([4, 3])
    """
    if lambda_max_half:
        lam = torch.minimum(lam, 1 - lam)
    lam = lam.to(x.dtype).reshape(-1, *[1] * (x.dim() - 1))
    return torch.lerp(x[mined.high], x[mined.low], lam)

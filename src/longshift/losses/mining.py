"""Hard-negative mining and mixup (NDCL eq. neg_aug), as index tensors of static shape.

For each class k in the batch, the quarter of its samples with the lowest p_k is paired with the samples of other
classes that have the highest p_k. By default as many samples are mined as the batch has.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor

from longshift.losses.common import check, full_precision

Share = Literal["inverse", "uniform", "released"]
Pairs = Literal["paper", "released"]
SHARES: tuple[Share, ...] = ("inverse", "uniform", "released")
PAIRS: tuple[Pairs, ...] = ("paper", "released")


class Repeats(NamedTuple):
    """What the authors' code does once a class has used all its pairs, per mined sample.

    `partner` is a second negative that is mixed into the first (the first itself if there is none), `start` the mined
    sample with which the round over the pairs began, and `redrawn` tells whether the round has a new coefficient.
    """

    partner: Tensor
    start: Tensor
    redrawn: Tensor


class Mined(NamedTuple):
    """Per mined sample: the low-confidence sample of its class, the hard negative, and the class.

    `cls` is -1 if the batch has only one class, so that the sample is not a negative of any anchor. `repeats` is None
    with the pairs of the paper.
    """

    low: Tensor
    high: Tensor
    cls: Tensor
    repeats: Repeats | None = None


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
        grown = torch.where(present, (counts.to(dtype) / counts.sum()).exp(), 0.0)
        # Cumulative and rounded up as in the original; the small offset keeps rounding from adding a sample.
        steps = (grown.cumsum(0) * (total / grown.sum()) - 1e-4).ceil().long()
        return steps.diff(prepend=steps.new_zeros(1))
    if share == "uniform":
        return apportion(present.to(dtype), present, total)
    known = counts if class_counts is None else class_counts
    return apportion(1.0 / known.to(dtype).clamp(min=1), present, total)


@full_precision
def mine(
    probabilities: Tensor,
    labels: Tensor,
    class_counts: Tensor | None = None,
    *,
    share: Share = "inverse",
    pairs: Pairs = "paper",
    total: int | None = None,
) -> Mined:
    """Choose pairs of samples to mix into hard negatives (eq. neg_aug of NDCL).

    Pairs of a class go through its low quarter first and then move to the next hard negative. If the other classes
    have too few samples, the hard negatives start over. No gradient flows through the choice.

    Args:
        probabilities: Probabilities (B, K).
        labels: Classes (B,).
        class_counts: Training samples per class (K,), for share "inverse"; by default those of the batch.
        share: How pairs are distributed over classes: "inverse", "uniform" or "released".
        pairs: Which samples are paired: "paper", or "released" for the thresholds and the order of the authors' code.
        total: Number of pairs, at least B; B by default.

    Returns:
        The pairs, grouped by class.

    Example:
        >>> import torch
        >>> p, y = torch.tensor([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8], [0.45, 0.55]]), torch.tensor([0, 0, 1, 1])
        >>> mined = mine(p, y)

        >>> len(mined.low) == len(mined.high) == len(y)
        True
    """
    check("pairs", pairs, PAIRS)
    p = probabilities.detach()
    size, classes = p.shape
    total = total or size
    counts = batch_counts(labels, classes)
    mined = mined_counts(counts, total, share, class_counts)
    ends = mined.cumsum(0)
    place = torch.arange(total, device=labels.device)
    cls = torch.searchsorted(ends, place, right=True)
    within = place - (ends - mined)[cls]

    if classes <= size:
        rows, row = torch.arange(classes, device=labels.device), cls
        by_class = p.T
    else:  # at most `size` classes are present: one row per present class
        seen = (counts > 0).cumsum(0)
        rows = torch.searchsorted(seen, place[:size], right=True).clamp(max=classes - 1)
        row = (seen - 1)[cls]
        by_class = p.T[rows]
    # One sort serves both: non-members first, by descending p_k, then members, by ascending p_k.
    member = rows[:, None] == labels[None, :]
    key = torch.where(member, by_class, -by_class - torch.finfo(p.dtype).tiny)
    order = key.sort(dim=1, stable=True).indices

    own, wanted = counts[cls], mined[cls]
    foreign = size - own
    cls = torch.where(foreign > 0, cls, -1)
    if pairs == "paper":
        quarter = (own + 3) // 4
        return Mined(
            order[row, foreign + within % quarter], order[row, (within // quarter) % foreign.clamp(min=1)], cls
        )

    # The authors' code: negatives with p_k of 2 / K or more, or of 1 / K or more if these do not give enough pairs.
    sure, likely = (((by_class >= bound / classes) & ~member).sum(1)[row] for bound in (2, 1))
    lows, highs = _released_sizes(own, foreign, sure, likely, wanted)
    turn, position = within // (lows * highs), within % (lows * highs)
    high = position % highs
    lone = own == 1
    # The original shuffles the negatives of a later round twice and mixes the two orders; here the second is shifted.
    partner = torch.where(lone, high, (high + turn) % highs)
    repeats = Repeats(order[row, partner], place - position, lone & (turn > 0))
    return Mined(order[row, foreign + position // highs], order[row, high], cls, repeats)


def _released_sizes(
    own: Tensor, foreign: Tensor, sure: Tensor, likely: Tensor, wanted: Tensor
) -> tuple[Tensor, Tensor]:
    """Return how many low-confidence samples and how many negatives the authors' code pairs, for `wanted` pairs."""
    half, third = foreign // 2, (wanted + 2) // 3
    # A class with one sample: a third of the pairs must have different negatives.
    few = torch.where(third <= likely, likely, foreign)
    few = torch.where(third <= half, half, few)
    few = torch.where(third <= sure, torch.where(third <= half, torch.minimum(sure, half), sure), few)
    # Otherwise the lowest quarter, half or three quarters: the first with two samples or more.
    parts = [(own * quarters + 3) // 4 for quarters in (1, 2, 3)]
    lows = torch.where(parts[0] > 1, parts[0], torch.where(parts[1] > 1, parts[1], parts[2]))
    lows = torch.where(likely > 0, lows, parts[2])
    needed = torch.minimum(foreign, (wanted + lows - 1) // lows)
    many = torch.where(sure > 0, sure, torch.where(likely > 0, likely, needed))
    many = torch.where((wanted > lows * sure) & (wanted <= lows * likely), likely, many)
    lone = own == 1
    return torch.where(lone, 1, lows), torch.where(lone, few, many).clamp(min=1)


def mix(x: Tensor, mined: Mined, lam: Tensor, *, lambda_max_half: bool = False) -> Tensor:
    """Mix the chosen pairs: lam * x[low] + (1 - lam) * x[high].

    Args:
        x: Inputs (B, ...).
        mined: What `mine` returned.
        lam: Mixing coefficients (M,) of M pairs, or (1,); with `mined.repeats`, followed by M for later rounds.
        lambda_max_half: Whether to use min(lam, 1 - lam).

    Returns:
        Mixed inputs (M, ...).

    Example:
        >>> import torch
        >>> p, y = torch.tensor([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8], [0.45, 0.55]]), torch.tensor([0, 0, 1, 1])
        >>> mined = mine(p, y)

        >>> mix(torch.rand(4, 3), mined, torch.full((4,), 0.3)).shape
        torch.Size([4, 3])
    """
    shape = (-1, *[1] * (x.dim() - 1))
    high = x[mined.high]
    if mined.repeats is not None:
        partner, start, redrawn = mined.repeats
        later = lam[-len(start) :][start]
        lam = torch.where(redrawn, later, lam[: -len(start)])
        high = torch.lerp(x[partner], high, later.to(x.dtype).reshape(shape))
    if lambda_max_half:
        lam = torch.minimum(lam, 1 - lam)
    return torch.lerp(high, x[mined.low], lam.to(x.dtype).reshape(shape))

"""The equations of NDCL as plain loops in float64: slow, obvious, and independent of the library."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import torch
from torch import Tensor


def similarity(a: Tensor, b: Tensor) -> Tensor:
    return (a * b).sum() / ((a * a).sum() * (b * b).sum()).sqrt()


def contrast_terms(
    name: str,
    p: Tensor,
    y: list[int],
    q: Tensor | None = None,
    c: list[int] | None = None,
    *,
    negatives: str,
    normalized: bool = False,
    kind: str = "exp",
) -> list[Tensor | None]:
    """One term per anchor; None where it is skipped."""
    terms: list[Tensor | None] = []
    for i, own in enumerate(y):
        s_pos = [similarity(p[i], p[j]) for j, other in enumerate(y) if j != i and other == own]
        s_neg = []
        if negatives in ("batch", "both"):
            s_neg += [similarity(p[i], p[j]) for j, other in enumerate(y) if other != own]
        if negatives in ("augmented", "both"):
            assert q is not None
            assert c is not None
            s_neg += [similarity(p[i], q[j]) for j, other in enumerate(c) if other == own]

        def f(s: Tensor) -> Tensor:
            if name.endswith("_nd"):
                return 1 - s
            if name == "released":
                return torch.exp(1 - s)
            return torch.exp(s) if kind == "exp" else s

        positive, negative = [f(s) for s in s_pos], [f(s) for s in s_neg]
        lead = positive if name in ("infonce", "supcon") else negative
        if not lead:
            terms.append(None)
            continue
        if normalized:
            z = sum(sum(group) / len(group) for group in (positive, negative) if group)
        else:
            z = sum(positive) + sum(negative)
        total = torch.as_tensor(z)
        if name.startswith("supcon"):
            terms.append(torch.as_tensor(-sum(torch.log(v / total) for v in lead) / len(lead)))
        elif name == "released" and not normalized:
            terms.append(-torch.log(torch.as_tensor(sum(lead)) / total))
        else:
            terms.append(-torch.log(torch.as_tensor(sum(lead)) / len(lead) / total))
    return terms


def quotas(weights: dict[int, Fraction], total: int) -> dict[int, Fraction]:
    """Proportional shares with at least one each: whoever would get less gets one, the others share the rest."""
    fixed: set[int] = set()
    while True:
        rest = total - len(fixed)
        free = sum((w for k, w in weights.items() if k not in fixed), Fraction(0))
        result = {k: Fraction(1) if k in fixed else rest * w / free for k, w in weights.items()}
        short = {k for k, quota in result.items() if quota < 1}
        if not short:
            return result
        fixed |= short


def largest_remainder(quota: dict[int, Fraction], total: int) -> dict[int, int]:
    """Whole numbers by the largest remainder, ties to the lowest class."""
    result = {k: math.floor(v) for k, v in quota.items()}
    order = sorted(quota, key=lambda k: (-(quota[k] - result[k]), k))
    for k in order[: total - sum(result.values())]:
        result[k] += 1
    return result


def mined_pairs(p: Tensor, y: list[int], shares: dict[int, int]) -> list[tuple[int, int, int]]:
    """(class, low, high) of every mined sample, classes in ascending order."""
    pairs = []
    values: Any = p.tolist()
    for k in sorted(set(y)):
        members = sorted((i for i in range(len(y)) if y[i] == k), key=lambda i: (values[i][k], i))
        rest = sorted((i for i in range(len(y)) if y[i] != k), key=lambda i: (-values[i][k], i))
        low = members[: math.ceil(len(members) / 4)]
        high = rest[: math.ceil(shares[k] / len(low))]
        every = [(k, a, b) for b in high for a in low]
        pairs += [every[t % len(every)] for t in range(shares[k])]
    return pairs


def released_mix(
    x: Tensor,
    p: Tensor,
    y: list[int],
    shares: dict[int, int],
    lam: float,
    redraw: Callable[[int], float],
    shuffle: Callable[[int, int], tuple[Sequence[int], Sequence[int]]],
) -> list[Tensor]:
    """The mined samples of the authors' code, classes in ascending order.

    `redraw` gives a new coefficient for the round that begins at a place, `shuffle` two orders of the negatives for a
    round of a number.
    """
    values: Any = p.tolist()
    made: list[Tensor] = []
    for k, wanted in sorted(shares.items()):
        positive = sorted((i for i in range(len(y)) if y[i] == k), key=lambda i: (values[i][k], i))
        negative = sorted((i for i in range(len(y)) if y[i] != k), key=lambda i: (-values[i][k], i))
        sure, likely = (sum(values[i][k] >= bound / p.shape[1] for i in negative) for bound in (2, 1))
        begin = len(made)
        if len(positive) == 1:
            third, half = math.ceil(wanted / 3), len(negative) // 2
            if third <= sure:
                size = min(sure, half) if third <= half else sure
            elif third <= half:
                size = half
            else:
                size = likely if third <= likely else len(negative)
            now = lam
            while len(made) < begin + wanted:
                made += [now * x[positive[0]] + (1 - now) * x[i] for i in negative[:size]]
                now = redraw(len(made))
        else:
            size, repeats = 0, False
            for part in (0.25, 0.5, 0.75):
                lows = math.ceil(len(positive) * part)
                if lows == 1:
                    continue
                if wanted <= lows * sure:
                    size = sure
                elif wanted <= lows * likely:
                    size = likely
                else:
                    size, repeats = sure or likely, True
                if size:
                    break
            size = size or min(len(negative), math.ceil(wanted / lows))
            turn = 0
            while len(made) < begin + wanted:
                others = [x[i] for i in negative[:size]]
                if turn:
                    assert repeats
                    inner = redraw(len(made))
                    first, second = shuffle(turn, size)
                    others = [inner * others[a] + (1 - inner) * others[b] for a, b in zip(first, second, strict=True)]
                made += [lam * x[i] + (1 - lam) * other for i in positive[:lows] for other in others]
                turn += 1
        del made[begin + wanted :]
    return made

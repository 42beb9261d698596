"""The long tail: a log-logistic curve over classes ordered by size, and counts cut to it."""

from __future__ import annotations

import functools
import math

import numpy as np

from longshift.array_types import FloatArray, IntArray
from longshift.errors import UsageError


@functools.lru_cache(maxsize=256)
def _log_logistic(c: float, classes: int) -> FloatArray:
    from scipy.stats import fisk  # takes half a second to import; most commands never need it

    # From just right of the mode, where the density begins to fall, to the 99th percentile.
    points = np.linspace(1.0 / fisk.mean(c), fisk.ppf(0.99, c), classes)
    density = np.asarray(fisk.pdf(points, c), dtype=np.float64)
    weights: FloatArray = density / np.sum(density)
    weights.setflags(write=False)
    return weights


def heavy_tail(classes: int, c: float = 3.0, ratio: float | None = None) -> FloatArray:
    """Shares of `classes` classes, falling, summing to one.

    `c` is the shape of the log-logistic density: its first share is 130 times its last at c = 3, 10^4 times as
    c nears 1, and never less than 25 times. A stated `ratio` (first over last) keeps the shape on a logarithmic
    scale and stretches it to exactly that ratio, which may be anything from 1 (flat).
    """
    if classes < 2:
        raise UsageError(f"a tail needs at least 2 classes, but got {classes}")
    if not (c > 1 and math.isfinite(c)):
        raise UsageError(f"Expected `c` to be greater than 1 (the density has no mean below), but got {c}")
    weights = _log_logistic(float(c), classes)
    if ratio is None:
        return weights
    if not (ratio >= 1 and math.isfinite(ratio)):
        raise UsageError(f"Expected `ratio` (largest over smallest class) to be at least 1, but got {ratio}")
    logs = np.log(weights / weights[0])
    stretched = np.exp(logs * (math.log(ratio) / -logs[-1]))
    return np.asarray(stretched / stretched.sum(), dtype=np.float64)


def cut_to_tail(room: FloatArray, weights: FloatArray, total: float | None = None) -> IntArray:
    """Counts that follow the tail, capped by what each class can give, at least one each.

    `room` holds what each class of one domain can give, in the order of the tail; NaN marks a class that the
    domain lacks. Without `total` the first class present gives all it can and sets the scale.
    """
    present = ~np.isnan(room)
    if not present.any():
        return np.zeros(len(room), dtype=np.int64)
    if total is None:
        head = int(np.argmax(present))
        total = float(room[head] / weights[head])
    wanted = np.minimum(total * weights, np.where(present, room, 0.0))
    return np.where(present, np.maximum(wanted, 1.0), 0.0).astype(np.int64)


def cut_to_ratio(
    room: FloatArray, c: float, ratio: float, at_least: IntArray | None = None, total: float = math.inf
) -> IntArray:
    """Counts whose largest is `ratio` times the smallest, as far as whole numbers and the data allow.

    The smallest count is a whole number that every class can give, the largest that number times the ratio;
    the classes between follow the tail, capped by what they have. Where the head cannot give the ratio times
    the least possible count, it gives all it can. `room` is as in `cut_to_tail`, `at_least` the least each
    class may give (by default one), `total` an upper bound on the sum.
    """
    present = np.flatnonzero(~np.isnan(room))
    result = np.zeros(len(room), dtype=np.int64)
    if len(present) == 0:
        return result
    floor = 1 if at_least is None else int(at_least[present].max())
    have = np.maximum(np.floor(room[present]), 1 if at_least is None else at_least[present])
    # Missing classes take no place in the tail: those present span the whole ratio.
    weights = heavy_tail(len(present), c, ratio) if len(present) > 1 else np.ones(1)
    limit = min(float(have[0]), max(total * float(weights[0]), floor))
    least = max(floor, math.floor(min(float(have.min()), limit / ratio)))
    head = min(math.floor(limit), round(least * ratio))
    wanted = np.clip(np.rint(head * weights / weights[0]), least, max(head, least))
    result[present] = np.minimum(wanted, have).astype(np.int64)
    return result

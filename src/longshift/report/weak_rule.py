"""What counts as weak: one rule for the page, the card and the console."""

from __future__ import annotations

import math
from collections.abc import Sequence

from scipy import stats

from longshift.inference import LEVEL

LOW = 0.5  # recognized less often than not
BEHIND = 0.15  # this far below the mean of all classes


def weak_indices(accuracies: Sequence[float | None]) -> list[int]:
    """Positions of the weak values, weakest first: below one half, or 15 points below the mean. The best never is.

    >>> weak_indices([0.9, 0.45, None, 0.7])
    [1]
    >>> weak_indices([0.4, 0.3])  # both are low, but one of them is the best there is
    [1]
    """
    known = sorted((value, k) for k, value in enumerate(accuracies) if value is not None)
    if not known:
        return []
    best, limit = known[-1][0], weak_below([value for value, _ in known])
    return [k for value, k in known if value < best and value < limit]


def weak_below(known: Sequence[float]) -> float:
    """The accuracy under which a class is called weak."""
    return max(LOW, sum(known) / len(known) - BEHIND)


def share_interval(share: float, n: float, level: float = LEVEL) -> tuple[float, float]:
    """Wilson's interval for the share that stands behind `share` of n samples, by their number alone.

    >>> [round(end, 2) for end in share_interval(0.0, 1)], [round(end, 2) for end in share_interval(0.4, 100)]
    ([0.0, 0.62], [0.34, 0.46])
    """
    z = float(stats.norm.ppf((1 + level) / 2))
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    reach = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(middle - reach, 0.0), min(middle + reach, 1.0)

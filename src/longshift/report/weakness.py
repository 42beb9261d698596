"""What counts as weak: one rule for the page, the card and the console."""

from __future__ import annotations

from collections.abc import Sequence

LOW = 0.5  # recognised less often than not
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
    best, mean = known[-1][0], sum(value for value, _ in known) / len(known)
    return [k for value, k in known if value < best and (value < LOW or value < mean - BEHIND)]

"""Many, medium and few: classes by their number of training samples."""

from __future__ import annotations

import numpy as np

from longshift.array_types import IntArray

SHOTS = ("many", "medium", "few")


def shot_groups(counts: IntArray, many: float, few: float) -> tuple[str, ...]:
    """Return the group of each class.

    Args:
        counts: Training samples, sources x classes.
        many: A class whose count, averaged over sources, is above this is "many".
        few: A class whose count is below this is "few".

    Returns:
        "many", "medium" or "few" for each class.

    Example:
        >>> import numpy as np
        >>> shot_groups(np.array([[100, 30, 4], [80, 20, 2]]), many=50, few=10)
        ('many', 'medium', 'few')
    """
    means = counts.sum(axis=0) / counts.shape[0]
    return tuple("many" if mean > many else "few" if mean < few else "medium" for mean in means)


def terciles(counts: IntArray) -> tuple[float, float]:
    """Thresholds (many, few) that cut the classes into groups as near to thirds as their counts allow.

    Classes with equal counts stay together. All three groups have members whenever there are three different
    counts; with two there is no medium group, and with one every class is medium.
    """
    means = np.sort(counts.sum(axis=0) / counts.shape[0])[::-1]
    # A cut after position i is possible where the next class is smaller.
    cuts = np.flatnonzero(means[:-1] > means[1:]) + 1
    if len(cuts) == 0:
        return float(means[0]), float(means[0])
    if len(cuts) == 1:
        middle = _between(means, int(cuts[0]))
        return middle, middle
    third = len(means) / 3
    upper = int(cuts[:-1][np.argmin(np.abs(cuts[:-1] - third))])  # not the last cut: the few come after another
    later = cuts[cuts > upper]
    lower = int(later[np.argmin(np.abs(later - 2 * third))])
    return _between(means, upper), _between(means, lower)


def _between(means: np.typing.NDArray[np.float64], cut: int) -> float:
    return float(means[cut - 1] + means[cut]) / 2

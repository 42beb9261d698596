"""Many, medium and few: classes by their number of training samples."""

from __future__ import annotations

import numpy as np

from longshift.array_types import IntArray

SHOTS = ("many", "medium", "few")


def shot_groups(counts: IntArray, many: float, few: float) -> tuple[str, ...]:
    """The group of each class: its count averaged over the source domains is > many, < few, or in between."""
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

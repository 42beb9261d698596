"""Many, medium and few: which classes have how much training data."""

from __future__ import annotations

import numpy as np

from longshift.data.manifest import IntArray

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
    pairs = [(int(a), int(b)) for i, a in enumerate(cuts) for b in cuts[i + 1 :]] if len(cuts) <= 64 else []
    if not pairs:  # many classes: the nearest cut to each third is as good, and two distinct ones always exist
        upper = int(cuts[:-1][np.argmin(np.abs(cuts[:-1] - third))])
        later = cuts[cuts > upper]
        return _between(means, upper), _between(means, int(later[np.argmin(np.abs(later - 2 * third))]))
    upper, lower = min(pairs, key=lambda pair: (abs(pair[0] - third) + abs(pair[1] - 2 * third), pair))
    return _between(means, upper), _between(means, lower)


def _between(means: np.typing.NDArray[np.float64], cut: int) -> float:
    return float(means[cut - 1] + means[cut]) / 2

"""Why an estimate for a new site is less certain than the errors at held-out sites show, and by how much.

The held-out sites of a fit are as they are: none is farther from the training sites than all of them, one class rarely
dominates, and most have many samples. Where a new site differs, the interval of its estimate grows by amounts that
`python -m benchmarks.label_free_constants` measured on other data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from longshift.analysis import LogitRange
from longshift.array_types import IntArray

ODD = 0.3  # a class is predicted this much more often than at any training site: a warning
FEW = 100  # samples; fewer make the interval wider
# Factors of the width that held-out sites ask for: of every site, and what each part of `Doubt.parts` adds to it.
USUAL_WIDTH, DISTANCE_WIDTH, DOMINANCE_WIDTH, FEW_WIDTH = 0.99, 3.51, 2.96, 0.50


@dataclass(frozen=True)
class ClassExcess:
    """The class whose predicted share at a site exceeds its share at any training site the most."""

    label: int
    share: float  # of the predictions here
    known: float  # highest share at any training site

    @property
    def excess(self) -> float:
        """By how much, from 0 to 1."""
        return max(self.share - self.known, 0.0)


def class_excess(counts: Sequence[Sequence[int]], predicted: IntArray) -> ClassExcess:
    """Compare predicted shares with samples of each class at each training site, (sites, classes)."""
    table = np.asarray(counts, dtype=np.float64)
    known = (table / np.maximum(table.sum(axis=1, keepdims=True), 1)).max(axis=0)
    shares = np.bincount(predicted, minlength=len(known)) / max(len(predicted), 1)
    most = int((shares - known).argmax())
    return ClassExcess(most, float(shares[most]), float(known[most]))


def relative_excess(distance: float, most: float) -> float:
    """How much larger a distance is than the largest one so far, from 0 (not at all) to 1.

    >>> relative_excess(0.2, 0.3), relative_excess(0.9, 0.3), relative_excess(0.1, 0.0)
    (0.0, 0.5, 1.0)
    """
    return (distance - most) / (distance + most) if distance > most else 0.0


@dataclass(frozen=True)
class Doubt:
    """What makes an estimate less certain than the held-out sites show."""

    farther: float  # relative excess of the distance to the nearest training site over that of any held-out site
    dominance: float  # by how much the predicted share of a class exceeds that at any training site
    n: int  # samples

    def parts(self) -> tuple[float, float, float, float]:
        """What each constant is multiplied with; those of distance, dominance and few samples are 0 at usual sites."""
        return 1.0, self.farther, max(self.dominance - ODD, 0.0), max(math.sqrt(FEW / self.n) - 1, 0.0)

    def widen(self, found: LogitRange) -> LogitRange:
        """The range of the held-out sites with the width that this doubt calls for."""
        constants = (USUAL_WIDTH, DISTANCE_WIDTH, DOMINANCE_WIDTH, FEW_WIDTH)
        factor = sum(constant * part for constant, part in zip(constants, self.parts(), strict=True))
        return LogitRange(found.center, factor * found.half)

    def reasons(self) -> list[str]:
        """Why the interval is wider than that of a usual site, in words."""
        told = (
            "the site is farther from the training sites than any held-out one was",
            "one class is predicted far more often than it occurs at any training site",
            f"{self.n} samples are few",
        )
        return [reason for reason, part in zip(told, self.parts()[1:], strict=True) if part > 0]

    @property
    def warns(self) -> bool:
        """Whether there is a warning: the site is too far away, or one class dominates the predictions."""
        return self.farther > 0 or self.dominance > ODD

    def usual(self) -> Doubt:
        """The same without the reasons."""
        return Doubt(0.0, 0.0, max(self.n, FEW))

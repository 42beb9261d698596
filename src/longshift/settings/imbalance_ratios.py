"""How imbalanced a setting is: the ratios CR, DR and ECR."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from longshift.array_types import IntArray


@dataclass(frozen=True)
class Ratios:
    """Largest over smallest; infinite where the smallest is zero.

    Attributes:
        cr: Ratio of the classes, summed over the sources.
        dr: Ratio of the sources, summed over the classes.
        ecr: Ratio of the classes within each source, by its name.

    Example:
        >>> import numpy as np
        >>> found = ratios(np.array([[8, 2], [4, 1]]), ["a", "b"])
        >>> found.cr, found.dr, found.ecr
        (4.0, 2.0, {'a': 4.0, 'b': 4.0})
    """

    cr: float
    dr: float
    ecr: dict[str, float]


def ratios(counts: IntArray, sources: Sequence[str]) -> Ratios:
    """Compute the imbalance ratios of training counts.

    Args:
        counts: Training samples, sources x classes.
        sources: Names of the sources.

    Returns:
        The ratios.

    Example:
        >>> import numpy as np
        >>> ratios(np.array([[100, 10], [50, 5]]), ["north", "south"]).cr
        10.0
    """
    ecr = {source: _largest_over_smallest(row) for source, row in zip(sources, counts, strict=True)}
    return Ratios(_largest_over_smallest(counts.sum(axis=0)), _largest_over_smallest(counts.sum(axis=1)), ecr)


def _largest_over_smallest(values: IntArray) -> float:
    smallest = int(values.min())
    return float(values.max()) / smallest if smallest else float(np.inf)

"""How imbalanced a setting is: the ratios CR, DR and ECR."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from longshift.array_types import IntArray


@dataclass(frozen=True)
class Ratios:
    """Largest over smallest; infinite where the smallest is zero."""

    cr: float  # classes, summed over the sources
    dr: float  # sources, summed over the classes
    ecr: dict[str, float]  # classes within each source


def ratios(counts: IntArray, sources: Sequence[str]) -> Ratios:
    """The ratios of training counts (sources x classes)."""
    ecr = {source: _largest_over_smallest(row) for source, row in zip(sources, counts, strict=True)}
    return Ratios(_largest_over_smallest(counts.sum(axis=0)), _largest_over_smallest(counts.sum(axis=1)), ecr)


def _largest_over_smallest(values: IntArray) -> float:
    smallest = int(values.min())
    return float(values.max()) / smallest if smallest else float(np.inf)

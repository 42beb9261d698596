"""A setting: the number of training samples of each class from each source domain, for one target."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from longshift.array_types import IntArray

Counts = Mapping[str, Mapping[str, int]]  # domain -> class -> number of samples

NO_TARGET = ""  # no domain is held out: the final model, for a domain that is not in the data


@dataclass(frozen=True)
class Setting:
    """Training counts per source and class, thresholds and validation size for one target.

    Attributes:
        name: Its name.
        target: The domain that is held out.
        counts: Source -> class -> training samples, in the order of the sources.
        many: A class with more training samples per source than this is "many".
        few: A class with fewer than this is "few"; the others are "medium".
        validation: Validation samples per class and source.

    Example:
        >>> counts = {"a": {"cat": 30, "dog": 3}, "b": {"cat": 20, "dog": 2}}
        >>> Setting("mine", "c", counts, many=15.0, few=5.0, validation=5).counts["b"]["dog"]
        2
    """

    name: str
    target: str
    counts: Counts
    many: float
    few: float
    validation: int

    @property
    def sources(self) -> tuple[str, ...]:
        """The source domains in order."""
        return tuple(self.counts)

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes in the order in which they first appear in the counts."""
        return tuple(dict.fromkeys(name for row in self.counts.values() for name in row))

    def table(self, classes: Iterable[str] | None = None) -> IntArray:
        """The counts as an array, sources x classes; a class that a source lacks counts zero."""
        names = self.classes if classes is None else tuple(classes)
        return np.array([[row.get(name, 0) for name in names] for row in self.counts.values()], dtype=np.int64)


def held_for_validation(available: IntArray, validation: int, third: bool) -> IntArray:
    """Validation samples of each class and source; with `third`, at most a third of a class, but at least one."""
    wanted = np.full_like(available, validation)
    return np.minimum(wanted, np.maximum(available // 3, 1)) if third else wanted


def as_counts(sources: Iterable[str], classes: Iterable[str], table: IntArray) -> dict[str, dict[str, int]]:
    """The mapping form of an array of counts."""
    names = tuple(classes)
    return {
        source: {name: int(n) for name, n in zip(names, row, strict=True)}
        for source, row in zip(sources, table, strict=True)
    }

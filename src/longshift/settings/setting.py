"""A setting: the number of training samples of each class from each source domain, for one target.

Also what follows from the numbers: how imbalanced they are, which classes are many, medium and few, and which samples
of a dataset a setting may use.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from longshift.array_types import IntArray
from longshift.data import Manifest

Counts = Mapping[str, Mapping[str, int]]  # domain -> class -> number of samples

SHOTS = ("many", "medium", "few")
NATURAL_SHARE = 0.2  # of the groups of each class and source that validate on natural data
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
        validation: Validation samples per class and source; below 1, the share of the groups of each.

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
    validation: float

    @property
    def share(self) -> float | None:
        """The share of the groups that validate, where `validation` is one; training then takes all others."""
        return self.validation if 0 < self.validation < 1 else None

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


def held_for_validation(available: IntArray, validation: float, third: bool) -> IntArray:
    """Validation samples of each class and source; with `third`, at most a third of a class, but at least one.

    A `validation` below 1 is a share: at least one is held, and at least one is left for training.
    """
    if 0 < validation < 1:
        wanted = np.maximum((validation * available).astype(np.int64), 1)
        return np.minimum(wanted, np.maximum(available - 1, 0))
    wanted = np.full_like(available, int(validation))
    return np.minimum(wanted, np.maximum(available // 3, 1)) if third else wanted


def as_counts(sources: Iterable[str], classes: Iterable[str], table: IntArray) -> dict[str, dict[str, int]]:
    """The mapping form of an array of counts."""
    names = tuple(classes)
    return {
        source: {name: int(n) for name, n in zip(names, row, strict=True)}
        for source, row in zip(sources, table, strict=True)
    }


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


def reserved_for_test(manifest: Manifest) -> npt.NDArray[np.bool_]:
    """(N,) rows that the data's own split column marks "test": they are never trained or validated on."""
    if manifest.splits is None:
        return np.zeros(len(manifest), dtype=np.bool_)
    return np.array([name.strip().casefold() == "test" for name in manifest.splits], dtype=np.bool_)


def usable_table(manifest: Manifest) -> IntArray:
    """Samples per (domain, class) that training and validation may take."""
    table = manifest.count_table()
    reserved = reserved_for_test(manifest)
    np.subtract.at(table, (manifest.domains[reserved], manifest.labels[reserved]), 1)
    return table


def usable_counts(manifest: Manifest) -> Counts:
    """The same by name: what a setting may be made from."""
    return as_counts(manifest.domain_names, manifest.classes, usable_table(manifest))

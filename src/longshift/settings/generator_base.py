"""What a generator is: a rule that makes a setting from the counts of any dataset, registered under its name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeVar, runtime_checkable

import numpy as np

from longshift.array_types import FloatArray, IntArray
from longshift.errors import LongshiftError, UsageError, unknown_name
from longshift.registry import Registry
from longshift.settings.setting import NO_TARGET, Counts, Setting, as_counts, held_for_validation
from longshift.settings.shots import terciles
from longshift.text import some


@runtime_checkable
class Generator(Protocol):
    """An object that makes a setting for one target domain from a dataset's counts.

    Example:
        >>> from longshift.settings import TotalHeavyTail
        >>> isinstance(TotalHeavyTail(), Generator)
        True
    """

    @property
    def name(self) -> str:
        """The name of the setting."""
        ...

    def generate(self, totals: Counts, target: str) -> Setting:
        """The setting for `target`; `totals` holds every domain of the dataset, the target included."""
        ...


@dataclass(frozen=True)
class Pool:
    """The samples that the source domains of one target have, as arrays (sources x classes).

    Attributes:
        sources: Names of the sources.
        classes: Names of the classes.
        totals: All samples.
        spare: Samples that are left after validation, at least 0.
        room: The part of them that training may use; NaN where the source lacks the class.

    Example:
        >>> import numpy as np
        >>> spare = np.array([[25, 5]])
        >>> Pool(("a",), ("cat", "dog"), spare + 5, spare, 0.8 * spare).by_size(spare[0])
        [0, 1]
    """

    sources: tuple[str, ...]
    classes: tuple[str, ...]
    totals: IntArray
    spare: IntArray
    room: FloatArray

    def by_size(self, spare: IntArray) -> list[int]:
        """Class positions, largest first; ties are broken by name, the last one first."""
        return sorted(range(len(self.classes)), key=lambda k: (int(spare[k]), self.classes[k]), reverse=True)

    def sources_by_size(self) -> list[int]:
        """Source positions, smallest first."""
        return sorted(range(len(self.sources)), key=lambda d: (int(self.spare[d].sum()), self.sources[d]))


@dataclass(frozen=True)
class CountsGenerator(ABC):
    """Base class of generators: it reserves validation and test samples, sets the thresholds and checks names.

    Args:
        validation: Samples per class and source that are reserved for validation.
        test: Share of the rest that is reserved for the in-distribution test.
        many: A class with more training samples per source than this is "many"; None: the upper tercile.
        few: A class with fewer training samples per source than this is "few"; None: the lower tercile.
        third: Whether validation takes at most a third of a small class.

    Example:
        >>> @register_generator
        ... class Half(CountsGenerator):
        ...     name = "Half"
        ...     def table(self, pool, turn):
        ...         return np.where(pool.totals > 0, np.maximum(pool.spare // 2, 1), 0)
    """

    validation: int = 5
    test: float = 0.2
    many: float | None = None
    few: float | None = None
    third: bool = False

    name: ClassVar[str]

    def generate(self, totals: Counts, target: str) -> Setting:
        """The setting for `target` from the counts of the other domains (of all domains if there is no target)."""
        pool = self._pool(totals, target)
        table = self.table(pool, list(totals).index(target) if target != NO_TARGET else len(totals))
        many, few = terciles(table)
        return Setting(
            self.name,
            target,
            as_counts(pool.sources, pool.classes, table),
            many if self.many is None else self.many,
            few if self.few is None else self.few,
            self.validation,
        )

    @abstractmethod
    def table(self, pool: Pool, turn: int) -> IntArray:
        """Training counts, sources x classes; `turn` is the position of the target among the domains."""

    def _pool(self, totals: Counts, target: str) -> Pool:
        if target not in totals and target != NO_TARGET:
            raise UsageError(unknown_name("target domain", target, totals))
        if self.validation < 0:
            raise UsageError(f"Expected `validation` to be at least 0, got {self.validation}.")
        if not 0 <= self.test < 1:
            raise UsageError(f"Expected `test` to be at least 0 and less than 1, got {self.test}.")
        sources = tuple(name for name in totals if name != target)
        classes = tuple(dict.fromkeys(name for row in totals.values() for name in row))
        if not sources:
            raise UsageError("Expected at least 2 domains (1 source and the target), but the dataset has 1.")
        if len(classes) < 2:
            named = f" ({some(classes)})" if classes else ""
            raise UsageError(
                f"Expected at least 2 classes, got {len(classes)}{named}. Add samples of another class; the layout is "
                "domain/class/image.jpg. See what is read: longshift data inspect DATA"
            )
        table = np.array([[totals[s].get(k, 0) for k in classes] for s in sources], dtype=np.int64)
        spare = np.maximum(table - held_for_validation(table, self.validation, self.third), 0)
        room = np.where(table > 0, spare * (1 - self.test), np.nan)
        return Pool(sources, classes, table, spare, room)


G = TypeVar("G", bound=type[CountsGenerator])
GENERATORS = Registry[type[CountsGenerator]]("setting")
PUBLISHED_ONLY = ("GINIDG",)  # published as counts, without a rule that makes them


def register_generator(cls: G) -> G:
    """Decorate a subclass of `CountsGenerator`: its `name` is then a setting like the built-in ones.

    Args:
        cls: The class.

    Returns:
        The class.

    Raises:
        LongshiftError: If the class is not a generator, has no name, or has the name of another setting.

    Example:
        >>> @register_generator
        ... class Quarter(CountsGenerator):
        ...     name = "Quarter"
        ...     def table(self, pool, turn):
        ...         return np.where(pool.totals > 0, np.maximum(pool.spare // 4, 1), 0)
    """
    name = getattr(cls, "name", None)
    if not (isinstance(cls, type) and issubclass(cls, CountsGenerator)) or not isinstance(name, str) or not name:
        raise LongshiftError(f"Expected a subclass of CountsGenerator with a class attribute `name`, got {cls!r}.")
    if name in PUBLISHED_ONLY:
        raise LongshiftError(f"The setting {name!r} already exists. Register yours under another name.")
    GENERATORS.add(name, cls)
    return cls

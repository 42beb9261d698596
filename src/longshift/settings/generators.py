"""The settings that can be generated for any dataset.

With the parameters of the paper they give the published counts (see `published_counts`). To add a rule, subclass
`CountsGenerator`, implement `table` and decorate the class with `@register_generator`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeVar, runtime_checkable

import numpy as np

from longshift.array_types import FloatArray, IntArray
from longshift.errors import LongshiftError, UsageError, unknown_name
from longshift.registry import Registry
from longshift.settings.setting import NO_TARGET, Counts, Setting, as_counts, held_for_validation, terciles
from longshift.settings.tail_shapes import cut_to_ratio, cut_to_tail, heavy_tail
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
        validation: Samples per class and source that are reserved for validation; below 1, their share.
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

    validation: float = 5
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
_ALIASES = {"idg": "GINIDG"}
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


def setting_names() -> tuple[str, ...]:
    """Return the names of all settings, also those of plugins.

    Returns:
        The names.

    Example:
        >>> "Duality" in setting_names()
        True
    """
    return (*PUBLISHED_ONLY, *GENERATORS)


def canonical_setting(name: str) -> str:
    """The proper spelling of a setting's name ("duality" is "Duality", "idg" is "GINIDG")."""
    folded = {known.casefold(): known for known in setting_names()} | _ALIASES
    found = folded.get(name.strip().casefold())
    if found is None:
        raise UsageError(unknown_name("setting", name, setting_names()))
    return found


@dataclass(frozen=True)
class TailGenerator(CountsGenerator):
    """Base class of generators with a long tail.

    Attributes:
        c: Shape of the tail.
        ratio: Ratio of the largest to the smallest class; None for the ratio that the curve and the data give.

    Example:
        >>> TotalHeavyTail(ratio=10.0).ratio, issubclass(TotalHeavyTail, TailGenerator)
        (10.0, True)
    """

    c: float = 3.0
    ratio: float | None = None


@register_generator
@dataclass(frozen=True)
class TotalHeavyTail(TailGenerator):
    """The same long tail in every domain: classes ordered by their size over all sources follow the curve.

    Example:
        >>> totals = {name: {"cat": 90, "dog": 60, "owl": 45} for name in ("a", "b", "c")}

        >>> TotalHeavyTail().generate(totals, target="c").counts["a"]
        {'cat': 68, 'dog': 4, 'owl': 1}
    """

    name: ClassVar[str] = "TotalHeavyTail"

    def table(self, pool: Pool, turn: int) -> IntArray:
        """Training counts, sources x classes."""
        sums = pool.spare.sum(axis=0)
        order = pool.by_size(sums)
        table = np.zeros_like(pool.totals)
        present = pool.totals > 0
        if self.ratio is not None:
            sources_with = present.sum(axis=0)
            caps = np.where(present, np.maximum(np.floor(np.nan_to_num(pool.room)), 1), 0)
            room = np.where(sources_with > 0, caps.sum(axis=0), np.nan)
            wanted = cut_to_ratio(room[order], self.c, self.ratio, at_least=sources_with[order])
            for k, n in zip(order, wanted, strict=True):
                table[:, k] = _share_out(int(n), pool.spare[:, k], pool.room[:, k])
            return table
        weights = heavy_tail(len(order), self.c)
        total = (1 - self.test) * sums[order[0]] / weights[0]
        for weight, k in zip(weights, order, strict=True):
            wanted_sum = total * weight if k != order[0] else (1 - self.test) * sums[k]
            if wanted_sum > sums[k]:
                wanted_sum = sums[k] * (1 - self.test)
            for d in np.flatnonzero(present[:, k]):
                spare = int(pool.spare[d, k])
                n = int(wanted_sum * (spare / sums[k])) if spare else 0
                table[d, k] = max(int(spare * (1 - self.test)) if n >= spare else n, 1)
        return table


@register_generator
@dataclass(frozen=True)
class Duality(TailGenerator):
    """Major domains with the long tail, minor ones with the mirrored tail, and small balanced ones.

    The sources are ordered by size: the smallest third is major, the largest third small and balanced with
    `small` samples in total (drawn between the two numbers), the rest minor with a drawn size in between. Of two
    sources, one is major and one minor, so that there is a mirrored tail; a single source is major. As in the published
    tool, one random stream per dataset serves the targets in their order, so the order of the domains matters.

    Attributes:
        small: Smallest and largest number of samples of a small domain.
        seed: Seed of the drawn sizes.

    Example:
        >>> totals = {name: {"cat": 90, "dog": 60, "owl": 45} for name in ("a", "b", "c")}

        >>> Duality().generate(totals, target="c").counts["a"]
        {'cat': 68, 'dog': 4, 'owl': 1}
    """

    small: tuple[int, int] = (40, 50)
    seed: int = 20240101
    name: ClassVar[str] = "Duality"

    def table(self, pool: Pool, turn: int) -> IntArray:
        """Training counts, sources x classes."""
        by_size = pool.sources_by_size()
        third = max(round(len(by_size) / 3), 1)  # at least one major domain
        major = by_size[:third]
        end = max(len(by_size) - third, 2)  # at least one minor domain, if there are two sources
        minor, balanced = by_size[third:end], by_size[end:]
        order = pool.by_size(pool.spare[major[0]])
        classes, mirrored = len(order), order[::-1]
        table = np.zeros_like(pool.totals)
        for position, d in enumerate(major):
            table[d, order] = _tail(pool.room[d, order], self.c * (position + 1), self.ratio)
        largest = int(table.sum(axis=1).max())
        drawn, betas = self._draws(turn, len(minor))
        drawn = max(drawn, classes)
        for d in balanced:
            table[d] = _level(pool, d, math.ceil(drawn / classes))
        for position, (d, beta) in enumerate(zip(minor, betas, strict=True)):
            size = round(beta * (largest - drawn) + drawn)
            table[d, mirrored] = _tail(pool.room[d, mirrored], self.c * (position + 1), self.ratio, size)
        return table

    def _draws(self, turn: int, minors: int) -> tuple[int, list[float]]:
        # The legacy generator: its stream never changes, and the published counts came from it.
        stream = np.random.RandomState(self.seed)
        for _ in range(turn + 1):
            drawn = int(stream.randint(self.small[0], self.small[1] + 1))
            betas = [float(stream.beta(0.5, 0.5, size=1)[0]) for _ in range(minors)]
        return drawn, betas


@register_generator
@dataclass(frozen=True)
class Cross(TailGenerator):
    """Half of the domains have the long tail, the other half the same tail mirrored.

    With an odd number of sources the smallest one is balanced.

    Attributes:
        middle: Mean count of the balanced domain, as a multiple of that of the others.

    Example:
        >>> totals = {name: {"cat": 90, "dog": 60, "owl": 45} for name in ("a", "b", "c")}

        >>> Cross().generate(totals, target="c").counts["a"]
        {'cat': 68, 'dog': 4, 'owl': 1}
    """

    middle: float = 0.3
    name: ClassVar[str] = "Cross"

    def table(self, pool: Pool, turn: int) -> IntArray:
        """Training counts, sources x classes."""
        by_size = pool.sources_by_size()
        half = len(by_size) // 2
        if half == 0:  # one source: nothing to mirror
            middle, positive, negative = [], by_size, []
        else:
            odd = len(by_size) - 2 * half
            middle, positive, negative = by_size[:odd], by_size[odd : odd + half], by_size[odd + half :]
        order = pool.by_size(pool.spare[positive[0]])
        table = np.zeros_like(pool.totals)
        for direction, group in ((order, positive), (order[::-1], negative)):
            for position, d in enumerate(group):
                table[d, direction] = _tail(pool.room[d, direction], self.c * (position + 1), self.ratio)
        if middle:
            mean = np.mean(table[positive + negative].sum(axis=0) / len(positive + negative)) * self.middle
            for d in middle:
                table[d] = _level(pool, d, math.floor(min(mean, _smallest_room(pool.room[d]))))
        return table


@register_generator
@dataclass(frozen=True)
class Balanced(CountsGenerator):
    """The same number of samples of each class from each source.

    Attributes:
        per_class: The number; by default, and at most, what the smallest class permits.

    Example:
        >>> totals = {name: {"cat": 90, "dog": 60, "owl": 45} for name in ("a", "b", "c")}

        >>> Balanced().generate(totals, target="c").counts["a"]
        {'cat': 32, 'dog': 32, 'owl': 32}
    """

    per_class: int | None = None
    name: ClassVar[str] = "Balanced"

    def table(self, pool: Pool, turn: int) -> IntArray:
        """Training counts, sources x classes."""
        n = math.floor(_smallest_room(pool.room))
        if self.per_class is not None:
            n = min(n, self.per_class)
        return np.where(pool.totals > 0, max(n, 1), 0)


@register_generator
@dataclass(frozen=True)
class Natural(CountsGenerator):
    """The dataset's own imbalance: training uses all samples that validation and the test share leave.

    Example:
        >>> totals = {name: {"cat": 90, "dog": 60, "owl": 45} for name in ("a", "b", "c")}

        >>> Natural().generate(totals, target="c").counts["a"]
        {'cat': 68, 'dog': 44, 'owl': 32}
    """

    name: ClassVar[str] = "Natural"

    def table(self, pool: Pool, turn: int) -> IntArray:
        """Training counts, sources x classes."""
        taken = np.maximum(np.floor(np.nan_to_num(pool.room)), 1)
        return np.where(pool.totals > 0, taken, 0).astype(np.int64)


def _tail(room: FloatArray, c: float, ratio: float | None, total: float | None = None) -> IntArray:
    if ratio is None:
        return cut_to_tail(room, heavy_tail(len(room), c), total)
    return cut_to_ratio(room, c, ratio, total=math.inf if total is None else total)


def _smallest_room(room: FloatArray) -> float:
    """The room of the smallest class that is present; zero if there is none."""
    present = ~np.isnan(room)
    return float(room[present].min()) if present.any() else 0.0


def _level(pool: Pool, source: int, n: int) -> IntArray:
    """`n` samples of each class of a source (at least one, at most as many as validation leaves)."""
    present = pool.totals[source] > 0
    return np.where(present, np.maximum(np.minimum(n, pool.spare[source]), 1), 0)


def _share_out(n: int, spare: IntArray, room: FloatArray) -> Sequence[int]:
    """Share `n` samples of a class among its sources by their size: at least one each, at most the room."""
    present = ~np.isnan(room)
    cap = np.where(present, np.maximum(np.floor(np.nan_to_num(room)), 1), 0).astype(np.int64)
    exact = n * spare / max(int(spare.sum()), 1)
    result = np.clip(np.floor(exact).astype(np.int64), present.astype(np.int64), cap)
    by_remainder = np.argsort(-(exact - np.floor(exact)), kind="stable")
    while result.sum() < n and (result < cap).any():
        for d in by_remainder:
            if result.sum() < n and result[d] < cap[d]:
                result[d] += 1
    while result.sum() > n and (result > 1).any():
        result[int(np.argmax(result))] -= 1
    return [int(value) for value in result]

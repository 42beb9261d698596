"""Settings made from a dataset's own counts.

With the parameters of the paper these give the published counts (see `published_counts`). With others, or with a
stated imbalance `ratio`, they work on any dataset. A generator of your own is any object with a `name` and a
`generate(totals, target)`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from longshift.array_types import IntArray
from longshift.errors import UsageError, unknown_name
from longshift.settings.setting import NO_TARGET, Counts, Setting, as_counts, held_for_validation
from longshift.settings.shots import terciles
from longshift.settings.tail_shapes import FloatArray, cut_to_ratio, cut_to_tail, heavy_tail


@runtime_checkable
class Generator(Protocol):
    """Anything that turns a dataset's counts into a setting for one target domain."""

    @property
    def name(self) -> str:
        """What the setting is called."""
        ...

    def generate(self, totals: Counts, target: str) -> Setting:
        """The setting for `target`; `totals` holds every domain of the dataset, the target included."""
        ...


@dataclass(frozen=True)
class Pool:
    """What the source domains of one target can give, as arrays (sources x classes)."""

    sources: tuple[str, ...]
    classes: tuple[str, ...]
    totals: IntArray
    spare: IntArray  # what is left of each class after validation, never below zero
    room: FloatArray  # the part of it that training may take; NaN where the source lacks the class

    def by_size(self, spare: IntArray) -> list[int]:
        """Class positions, largest first; of two equal ones the later name comes first."""
        return sorted(range(len(self.classes)), key=lambda k: (int(spare[k]), self.classes[k]), reverse=True)

    def sources_by_size(self) -> list[int]:
        """Source positions, smallest first."""
        return sorted(range(len(self.sources)), key=lambda d: (int(self.spare[d].sum()), self.sources[d]))


@dataclass(frozen=True)
class CountsGenerator(ABC):
    """What the generators here share: validation and test are set aside, thresholds follow, names are checked."""

    validation: int = 5  # samples per class and source set aside first
    test: float = 0.2  # share of the rest that stays for the in-distribution test
    many: float | None = None  # thresholds; None: by terciles of the classes
    few: float | None = None
    third: bool = False  # validation takes a third of a small class at most

    name: ClassVar[str]

    def generate(self, totals: Counts, target: str) -> Setting:
        """The setting for `target`, made from the counts of the other domains (of all, if there is no target)."""
        pool = self._pool(totals, target)
        table = self._table(pool, list(totals).index(target) if target != NO_TARGET else len(totals))
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
    def _table(self, pool: Pool, turn: int) -> IntArray:
        """Training counts, sources x classes; `turn` is the target's place among the domains."""

    def _pool(self, totals: Counts, target: str) -> Pool:
        if target not in totals and target != NO_TARGET:
            raise UsageError(unknown_name("target domain", target, totals))
        if self.validation < 0:
            raise UsageError(f"Expected `validation` to be at least 0, but got {self.validation}")
        if not 0 <= self.test < 1:
            raise UsageError(f"Expected `test` to be at least 0 and less than 1, but got {self.test}")
        sources = tuple(name for name in totals if name != target)
        classes = tuple(dict.fromkeys(name for row in totals.values() for name in row))
        if not sources:
            raise UsageError("a setting needs at least 2 domains (1 source and the target), but the dataset has 1")
        if len(classes) < 2:
            raise UsageError(f"a setting needs at least 2 classes, but the dataset has {len(classes)}")
        table = np.array([[totals[s].get(k, 0) for k in classes] for s in sources], dtype=np.int64)
        spare = np.maximum(table - held_for_validation(table, self.validation, self.third), 0)
        room = np.where(table > 0, spare * (1 - self.test), np.nan)
        return Pool(sources, classes, table, spare, room)


@dataclass(frozen=True)
class TailGenerator(CountsGenerator):
    """A generator with a long tail in it: its shape `c`, or a stated ratio of the largest to the smallest class."""

    c: float = 3.0
    ratio: float | None = None  # None: whatever the curve and the data give


@dataclass(frozen=True)
class TotalHeavyTail(TailGenerator):
    """The same long tail in every domain: classes ordered by their size over all sources follow the curve."""

    name: ClassVar[str] = "TotalHeavyTail"

    def _table(self, pool: Pool, turn: int) -> IntArray:
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


@dataclass(frozen=True)
class Cross(TailGenerator):
    """Half of the domains have the long tail, the other half the same tail mirrored.

    With an odd number of sources the smallest one is balanced, at `middle` times the mean count of the others.
    """

    middle: float = 0.3
    name: ClassVar[str] = "Cross"

    def _table(self, pool: Pool, turn: int) -> IntArray:
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


@dataclass(frozen=True)
class Duality(TailGenerator):
    """Major domains with the long tail, minor ones with the mirrored tail, and small balanced ones.

    The sources are ordered by size: the smallest third is major, the largest third small and balanced with
    `small` samples (drawn between the two numbers) in all, the rest minor with a drawn size in between. The
    draws come from one stream per dataset that goes through the targets in their order, as in the published
    tool, so the order of the domains matters.
    """

    small: tuple[int, int] = (40, 50)
    seed: int = 20240101
    name: ClassVar[str] = "Duality"

    def _table(self, pool: Pool, turn: int) -> IntArray:
        by_size = pool.sources_by_size()
        third = max(round(len(by_size) / 3), 1)  # at least one major domain
        major = by_size[:third]
        minor = by_size[third : max(len(by_size) - third, third)]
        balanced = by_size[max(len(by_size) - third, third) :]
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
        # The legacy generator: its stream is frozen for good, and the published counts came from it.
        stream = np.random.RandomState(self.seed)
        for _ in range(turn + 1):
            drawn = int(stream.randint(self.small[0], self.small[1] + 1))
            betas = [float(stream.beta(0.5, 0.5, size=1)[0]) for _ in range(minors)]
        return drawn, betas


@dataclass(frozen=True)
class Balanced(CountsGenerator):
    """The same number of every class from every source: what the smallest cell can give, or `per_class` if less."""

    per_class: int | None = None
    name: ClassVar[str] = "Balanced"

    def _table(self, pool: Pool, turn: int) -> IntArray:
        n = math.floor(_smallest_room(pool.room))
        if self.per_class is not None:
            n = min(n, self.per_class)
        return np.where(pool.totals > 0, max(n, 1), 0)


@dataclass(frozen=True)
class Natural(CountsGenerator):
    """The dataset's own imbalance: training takes all that validation and the test share leave."""

    name: ClassVar[str] = "Natural"

    def _table(self, pool: Pool, turn: int) -> IntArray:
        taken = np.maximum(np.floor(np.nan_to_num(pool.room)), 1)
        return np.where(pool.totals > 0, taken, 0).astype(np.int64)


GENERATORS: Mapping[str, type[CountsGenerator]] = {
    cls.name: cls for cls in (TotalHeavyTail, Duality, Cross, Balanced, Natural)
}


def generate_all(generator: Generator, totals: Counts) -> dict[str, Setting]:
    """The setting for each domain of the dataset as target, in order."""
    return {target: generator.generate(totals, target) for target in totals}


def _tail(room: FloatArray, c: float, ratio: float | None, total: float | None = None) -> IntArray:
    if ratio is None:
        return cut_to_tail(room, heavy_tail(len(room), c), total)
    return cut_to_ratio(room, c, ratio, total=math.inf if total is None else total)


def _smallest_room(room: FloatArray) -> float:
    """What the smallest class that is there can give; zero if there is none."""
    present = ~np.isnan(room)
    return float(room[present].min()) if present.any() else 0.0


def _level(pool: Pool, source: int, n: int) -> IntArray:
    """`n` of each class of a source (at least one, at most what validation leaves)."""
    present = pool.totals[source] > 0
    return np.where(present, np.maximum(np.minimum(n, pool.spare[source]), 1), 0)


def _share_out(n: int, spare: IntArray, room: FloatArray) -> Sequence[int]:
    """`n` samples of a class over its sources by what they have: at least one each, never more than the room."""
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

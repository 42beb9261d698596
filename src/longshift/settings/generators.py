"""The settings that can be generated for any dataset.

With the parameters of the paper they give the published counts (see `published_counts`). To add a rule, subclass
`CountsGenerator`, implement `table` and decorate the class with `@register_generator`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from longshift.array_types import FloatArray, IntArray
from longshift.errors import UsageError, unknown_name

# The registry is exported from here, so that the built-in settings are in it, first.
from longshift.settings.generator_base import (
    GENERATORS as GENERATORS,
    PUBLISHED_ONLY,
    CountsGenerator,
    Pool,
    register_generator as register_generator,
)
from longshift.settings.tail_shapes import cut_to_ratio, cut_to_tail, heavy_tail

_ALIASES = {"idg": "GINIDG"}


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

"""Training counts of the two failure-mode studies, scaled to what a dataset holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from longshift.paper.recipe import Impossible

Totals = Mapping[str, Mapping[str, int]]
Counts = dict[str, dict[str, int]]

PAPER_RATIO = 400
PAPER_SIZES = (100, 20, 4)  # samples a class of the major, medium and minority domain
PAPER_LEVEL = 10
LEFT = 1  # sample a class that a split keeps for the in-distribution test


def study_validation(totals: Totals, sources: Sequence[str], most: int) -> int:
    """A third of the smallest class of the sources, up to `most`: these studies look at the validation set itself."""
    smallest = min(totals[source][name] for source in sources for name in _shared(totals, sources))
    return max(1, min(most, smallest // 3))


@dataclass(frozen=True)
class Mirrored:
    """Two domains whose long tails run against each other, and the same numbers spread evenly."""

    first: str
    second: str
    classes: tuple[str, ...]  # from the first domain's largest to the second's
    ratio: float
    tail: Counts
    level: Counts
    validation: int


def mirrored_counts(totals: Totals, sources: Sequence[str], wanted: float = PAPER_RATIO) -> Mirrored:
    """The first domain falls geometrically from its largest class to 1 / ratio of it, the second rises alike.

    The ratio is the wanted one or, where the data hold less, the number of samples that the two largest classes can
    give, so that the smallest keeps one.
    """
    first, second = sources[:2]
    names = _shared(totals, (first, second))
    validation = study_validation(totals, (first, second), 20)
    room = {d: {k: totals[d][k] - validation - LEFT for k in names} for d in (first, second)}
    # The class of which the first domain has most, next to the second, leads there; and the other way round.
    order = sorted(names, key=lambda k: (room[second][k] - room[first][k], k))
    head = min(room[first][order[0]], room[second][order[-1]])
    if head < 2:
        raise Impossible(f"no long tail is possible: the largest class of {first} or {second} can give {head} samples")
    ratio = min(float(wanted), float(head))
    steps = [head * ratio ** (-i / (len(order) - 1)) for i in range(len(order))]
    tail = {
        first: {k: _fit(n, room[first][k]) for k, n in zip(order, steps, strict=True)},
        second: {k: _fit(n, room[second][k]) for k, n in zip(order, reversed(steps), strict=True)},
    }
    level: Counts = {}
    for domain in (first, second):
        mean = sum(tail[domain].values()) / len(order)
        level[domain] = {k: _fit(mean, room[domain][k]) for k in order}
    return Mirrored(first, second, tuple(order), ratio, tail, level, validation)


@dataclass(frozen=True)
class Absorbed:
    """Three domains of very different size, balanced in themselves, and the same domains all small."""

    sources: tuple[str, str, str]  # major, medium, minority
    sizes: tuple[int, int, int]
    level_size: int
    uneven: Counts
    level: Counts
    validation: int


def absorbed_counts(totals: Totals, sources: Sequence[str]) -> Absorbed:
    """100, 20 and 4 samples a class against 10, 10 and 10; scaled down alike where the largest domain holds less."""
    if len(sources) < 3:
        raise Impossible(f"it needs 3 source domains, a major, a medium and a minority one; found {len(sources)}")
    names = _shared(totals, sources)
    validation = study_validation(totals, sources, 10)
    room = {d: min(totals[d][k] for k in names) - validation - LEFT for d in sources}
    major, medium, minority = sorted(sources, key=lambda d: -room[d])[:3]
    scale = min(1.0, room[major] / PAPER_SIZES[0])
    chosen = (major, medium, minority)
    sizes = tuple(_fit(scale * size, room[d]) for d, size in zip(chosen, PAPER_SIZES, strict=True))
    level = min(_fit(scale * PAPER_LEVEL, room[d]) for d in chosen)
    if sizes[0] <= sizes[2]:
        raise Impossible(f"the domains cannot be made unequal: {major} can give {sizes[0]} samples a class")
    return Absorbed(
        chosen, (sizes[0], sizes[1], sizes[2]), level,
        {d: dict.fromkeys(names, size) for d, size in zip(chosen, sizes, strict=True)},
        {d: dict.fromkeys(names, level) for d in chosen},
        validation,
    )  # fmt: skip


def _shared(totals: Totals, sources: Sequence[str]) -> list[str]:
    """Classes that all the domains have enough of: one sample to train on, one to validate and one to test with."""
    names = dict.fromkeys(name for row in totals.values() for name in row)
    found = [name for name in names if all(totals[source].get(name, 0) >= 3 for source in sources)]
    if len(found) < 2:
        raise Impossible(
            f"{' and '.join(sources)} share {len(found)} classes with 3 samples or more; 2 such classes are needed"
        )
    return found


def _fit(wanted: float, room: int) -> int:
    return max(1, min(round(wanted), room))

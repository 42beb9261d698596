"""Benchmarks: published datasets with the names of their domains and classes, and the number of images of each.

The built-in ones (VLCS, PACS, OfficeHome, DomainNet) are the entries of benchmarks.json.
"""

from __future__ import annotations

import functools
import json
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import NamedTuple

from longshift.data.manifest import Manifest
from longshift.errors import LongshiftError, UsageError
from longshift.registry import Registry
from longshift.text import some


@dataclass(frozen=True)
class Benchmark:
    """The published facts about a benchmark.

    Attributes:
        name: Its name.
        domains: Short name -> full name: {"A": "art_painting", ...}.
        classes: Names of the classes.
        totals: Short name -> class -> number of images.
        domain_spellings: Plain spelling -> short name.
        class_spellings: Plain spelling -> class.
        partial: Whether the totals cover a part of the usual data, so that a full copy has more images.
        note: What to know before taking a difference for an error.

    Example:
        >>> from longshift.data import get_benchmark
        >>> pacs = get_benchmark("PACS")
        >>> pacs.domains["P"], len(pacs.classes), pacs.totals["P"]["dog"]
        ('photo', 7, 189)
    """

    name: str
    domains: Mapping[str, str]
    classes: tuple[str, ...]
    totals: Mapping[str, Mapping[str, int]]
    domain_spellings: Mapping[str, str]
    class_spellings: Mapping[str, str]
    partial: bool
    note: str = ""

    def explains(self, difference: CountDifference) -> bool:
        """Whether a good copy can have this difference: the totals are partial and the copy has more images."""
        return self.partial and difference.found > difference.expected > 0


class CountDifference(NamedTuple):
    """A (domain, class) whose number of images differs from the published one; names as the dataset spells them."""

    domain: str
    label: str
    expected: int
    found: int


BENCHMARKS = Registry[Benchmark]("benchmark")


def plain(name: str) -> str:
    """The name without case, spaces and punctuation: "Real-World" -> "realworld"."""
    return "".join(c for c in unicodedata.normalize("NFKC", name).casefold() if c.isalnum())


def register_benchmark(
    name: str,
    *,
    domains: Mapping[str, str],
    classes: Sequence[str],
    totals: Mapping[str, Sequence[int]],
    aliases: Mapping[str, Sequence[str]] | None = None,
    class_aliases: Mapping[str, str] | None = None,
    partial: bool = False,
    note: str = "",
) -> None:
    """Make a benchmark known by name; a dataset with its domains and classes is then recognized as this benchmark.

    Args:
        name: What users type and tables show.
        domains: Short name of each domain -> its full name.
        classes: Names of the classes.
        totals: Short name of each domain -> number of images per class, in the order of `classes`.
        aliases: Short name of a domain -> other names under which copies of the dataset have it.
        class_aliases: Another name of a class -> its name.
        partial: Whether the totals cover only a part of the usual data.
        note: What to know before taking a difference from the totals for an error.

    Raises:
        LongshiftError: If another benchmark has this name, or the parts do not fit together.

    Example:
        >>> register_benchmark(
        ...     "Pets",
        ...     domains={"H": "home", "S": "street"},
        ...     classes=["cat", "dog"],
        ...     totals={"H": [120, 80], "S": [30, 90]},
        ... )
    """
    _load_built_in()  # first, so that their names are taken
    _add(name, domains, classes, totals, aliases or {}, class_aliases or {}, partial, note)


def _add(
    name: str,
    domains: Mapping[str, str],
    classes: Sequence[str],
    totals: Mapping[str, Sequence[int]],
    aliases: Mapping[str, Sequence[str]],
    class_aliases: Mapping[str, str],
    partial: bool,
    note: str,
) -> None:
    wrong = [key for key in domains if len(totals.get(key, ())) != len(classes)]
    if wrong or set(totals) != set(domains):
        raise LongshiftError(
            f"{name}: expected totals of {len(classes)} classes for each of the domains {', '.join(domains)}, got "
            + ", ".join(f"{len(row)} for {key}" for key, row in totals.items())
        )
    spellings = {
        plain(spelling): key for key, full in domains.items() for spelling in (key, full, *aliases.get(key, ()))
    }
    BENCHMARKS.add(
        name,
        Benchmark(
            name=name,
            domains=dict(domains),
            classes=tuple(classes),
            totals={key: dict(zip(classes, row, strict=True)) for key, row in totals.items()},
            domain_spellings=spellings,
            class_spellings={plain(label): label for label in classes}
            | {plain(alias): label for alias, label in class_aliases.items()},
            partial=partial,
            note=note,
        ),
    )


@functools.cache
def _load_built_in() -> None:
    """On first use: the file has the counts of 345 classes."""
    text = resources.files("longshift.data").joinpath("benchmarks.json").read_text(encoding="utf-8")
    for name, entry in json.loads(text).items():
        _add(name, **entry)


def all_benchmarks() -> Registry[Benchmark]:
    """Return all benchmarks, also those of plugins.

    Returns:
        A mapping from name to `Benchmark`.

    Example:
        >>> sorted(all_benchmarks())[:2]
        ['DomainNet', 'OfficeHome']
    """
    _load_built_in()
    return BENCHMARKS


def get_benchmark(benchmark: str) -> Benchmark:
    """Return a benchmark by name.

    Args:
        benchmark: Name in any case and punctuation ("pacs", "Office-Home").

    Returns:
        The benchmark.

    Raises:
        UsageError: If there is no benchmark of that name.

    Example:
        >>> get_benchmark("pacs").domains["A"]
        'art_painting'
    """
    known = all_benchmarks()
    for name, entry in known.items():
        if plain(name) == plain(benchmark):
            return entry
    raise UsageError(known.unknown(benchmark))


def match_names(found: Sequence[str], spellings: Mapping[str, str], what: str) -> dict[str, str]:
    """Canonical name -> the dataset's own; unknown names are left out."""
    result: dict[str, str] = {}
    for name in found:
        key = spellings.get(plain(name))
        if key is not None and key in result:
            raise LongshiftError(f"the {what} {result[key]!r} and {name!r} both mean {key}. Merge or rename them.")
        if key is not None:
            result[key] = name
    return result


def identify_domains(manifest: Manifest, benchmark: str) -> dict[str, str]:
    """Short name of each domain of the benchmark -> the dataset's own name for it; an error if one is missing."""
    entry = get_benchmark(benchmark)
    result = match_names(manifest.domain_names, entry.domain_spellings, "domains")
    missing = [full for key, full in entry.domains.items() if key not in result]
    if missing:
        raise LongshiftError(
            f"{manifest.name} lacks {len(missing)} of the {len(entry.domains)} domains of {entry.name}: "
            f"{', '.join(missing)}; got {some(manifest.domain_names, 8)}"
        )
    return {key: result[key] for key in entry.domains}


def identify_classes(manifest: Manifest, benchmark: str) -> dict[str, str]:
    """Published name of each class -> the dataset's own name for it; an error if one is missing."""
    entry = get_benchmark(benchmark)
    result = match_names(manifest.classes, entry.class_spellings, "classes")
    missing = [label for label in entry.classes if label not in result]
    if missing:
        raise LongshiftError(
            f"{manifest.name} lacks {len(missing)} of the {len(entry.classes)} classes of {entry.name}: {some(missing)}"
        )
    return {label: result[label] for label in entry.classes}


def compare_counts(manifest: Manifest, benchmark: str) -> list[CountDifference]:
    """Each (domain, class) whose count differs from the published one, including those that one side lacks."""
    entry = get_benchmark(benchmark)
    domains = match_names(manifest.domain_names, entry.domain_spellings, "domains")
    classes = match_names(manifest.classes, entry.class_spellings, "classes")
    expected = {
        (domains.get(key, entry.domains[key]), classes.get(label, label)): total
        for key, row in entry.totals.items()
        for label, total in row.items()
    }
    found = {
        (domain, label): n for domain, row in manifest.counts().items() for label, n in row.items() if n
    }  # fmt: skip
    return [
        CountDifference(*pair, expected.get(pair, 0), found.get(pair, 0))
        for pair in sorted(expected.keys() | found.keys())
        if expected.get(pair, 0) != found.get(pair, 0)
    ]

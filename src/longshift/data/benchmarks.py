"""The four benchmarks VLCS, PACS, OfficeHome, DomainNet: names, spellings seen in the wild, published totals."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import NamedTuple

from longshift.data.manifest import Manifest
from longshift.errors import LongshiftError, UsageError, unknown_name
from longshift.text import some


@dataclass(frozen=True)
class Benchmark:
    """What is published of a benchmark; `domains` are keyed by the short names of the count tables."""

    name: str
    domains: Mapping[str, str]  # short name -> full name: {"A": "art_painting", ...}
    classes: tuple[str, ...]
    totals: Mapping[str, Mapping[str, int]]  # short name -> class -> images
    domain_spellings: Mapping[str, str]  # plain spelling -> short name
    class_spellings: Mapping[str, str]  # plain spelling -> class
    partial: bool  # the totals are of a part of the usual data, so a full copy has more
    note: str = ""  # what to know before taking a difference for an error

    def explains(self, difference: CountDifference) -> bool:
        """Whether a difference is to be expected of a good copy: the totals are partial and it has more images."""
        return self.partial and difference.found > difference.expected > 0


class CountDifference(NamedTuple):
    """A (domain, class) whose number of images is not the published one; names as the dataset spells them."""

    domain: str
    label: str
    expected: int
    found: int


def plain(name: str) -> str:
    """The name without case, spaces and punctuation: "Real-World" -> "realworld"."""
    return "".join(c for c in unicodedata.normalize("NFKC", name).casefold() if c.isalnum())


@lru_cache(maxsize=1)
def all_benchmarks() -> dict[str, Benchmark]:
    """The benchmarks by name."""
    text = resources.files("longshift.data").joinpath("benchmarks.json").read_text(encoding="utf-8")
    result = {}
    for name, entry in json.loads(text).items():
        domains, classes = entry["domains"], tuple(entry["classes"])
        spellings = {
            plain(spelling): key
            for key, full in domains.items()
            for spelling in (key, full, *entry["aliases"][key])
        }  # fmt: skip
        result[name] = Benchmark(
            name=name,
            domains=domains,
            classes=classes,
            totals={key: dict(zip(classes, row, strict=True)) for key, row in entry["totals"].items()},
            domain_spellings=spellings,
            class_spellings={plain(label): label for label in classes} | entry["class_aliases"],
            partial=entry["partial"],
            note=entry["note"],
        )
    return result


def get(benchmark: str) -> Benchmark:
    """The benchmark called so, in any case ("pacs", "Office-Home")."""
    for name, entry in all_benchmarks().items():
        if plain(name) == plain(benchmark):
            return entry
    raise UsageError(unknown_name("benchmark", benchmark, all_benchmarks()))


def match_names(found: Sequence[str], spellings: Mapping[str, str], what: str) -> dict[str, str]:
    """Canonical name -> the dataset's own; names that are no known spelling are left out."""
    result: dict[str, str] = {}
    for name in found:
        key = spellings.get(plain(name))
        if key is not None and key in result:
            raise LongshiftError(f"the {what} {result[key]!r} and {name!r} both spell {key}. Merge or rename them.")
        if key is not None:
            result[key] = name
    return result


def identify_domains(manifest: Manifest, benchmark: str) -> dict[str, str]:
    """Short name of each domain of the benchmark -> the dataset's own name of it; an error if one is missing."""
    entry = get(benchmark)
    result = match_names(manifest.domain_names, entry.domain_spellings, "domains")
    missing = [full for key, full in entry.domains.items() if key not in result]
    if missing:
        raise LongshiftError(
            f"{manifest.name} lacks {len(missing)} of the {len(entry.domains)} domains of {entry.name}: "
            f"{', '.join(missing)}; found {some(manifest.domain_names, 8)}"
        )
    return {key: result[key] for key in entry.domains}


def identify_classes(manifest: Manifest, benchmark: str) -> dict[str, str]:
    """Published name of each class -> the dataset's own name of it; an error if one is missing."""
    entry = get(benchmark)
    result = match_names(manifest.classes, entry.class_spellings, "classes")
    missing = [label for label in entry.classes if label not in result]
    if missing:
        raise LongshiftError(
            f"{manifest.name} lacks {len(missing)} of the {len(entry.classes)} classes of {entry.name}: {some(missing)}"
        )
    return {label: result[label] for label in entry.classes}


def compare_counts(manifest: Manifest, benchmark: str) -> list[CountDifference]:
    """Every (domain, class) whose count differs from the published one, also where one side lacks it."""
    entry = get(benchmark)
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

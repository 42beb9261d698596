"""The paper's settings: the published counts, and the parameters of the generators that made them."""

from __future__ import annotations

import functools
import json
from importlib import resources
from typing import Any

from longshift.data import benchmarks
from longshift.errors import UsageError, unknown_name
from longshift.settings.generators import CountsGenerator, Cross, Duality, TotalHeavyTail, canonical_setting
from longshift.settings.setting import Setting

# Parameters of the published tool. Its thresholds were set by hand; they are in the files of counts.
_PARAMETERS: dict[tuple[str, str], CountsGenerator] = {
    ("TotalHeavyTail", "VLCS"): TotalHeavyTail(validation=5),
    ("TotalHeavyTail", "PACS"): TotalHeavyTail(validation=15),
    ("TotalHeavyTail", "OfficeHome"): TotalHeavyTail(validation=5),
    ("TotalHeavyTail", "DomainNet"): TotalHeavyTail(validation=5, c=2),
    ("Duality", "VLCS"): Duality(validation=5),
    ("Duality", "PACS"): Duality(validation=15),
    ("Duality", "OfficeHome"): Duality(validation=5, small=(65, 70)),
    ("Duality", "DomainNet"): Duality(validation=5, c=2),
    ("Cross", "VLCS"): Cross(validation=5),
    ("Cross", "PACS"): Cross(validation=15),
    ("Cross", "OfficeHome"): Cross(validation=5),
}


@functools.cache
def _document(benchmark: str) -> Any:
    file = resources.files("longshift.settings").joinpath(f"counts/{benchmark}.json")
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {"settings": {}}


def published_settings(benchmark: str) -> tuple[str, ...]:
    """Return the settings with published counts for a benchmark.

    Args:
        benchmark: Name of the benchmark.

    Returns:
        Their names; none for a benchmark that is not the paper's.

    Example:
        >>> "GINIDG" in published_settings("PACS")
        True
    """
    return tuple(_document(benchmarks.get_benchmark(benchmark).name)["settings"])


def published(benchmark: str, setting: str, target: str) -> Setting:
    """Return a published setting of a benchmark.

    Args:
        benchmark: Name of the benchmark.
        setting: Name of the setting.
        target: The domain that is held out, by its short or full name.

    Returns:
        The setting; domains have their short names ("A", "clip").

    Raises:
        LongshiftError: If nothing was published for them.

    Example:
        >>> published("PACS", "Duality", "sketch").sources
        ('A', 'C', 'P')
    """
    known, name = benchmarks.get_benchmark(benchmark), canonical_setting(setting)
    document = _document(known.name)
    if name not in document["settings"]:
        there = ", ".join(document["settings"]) or "none"
        raise UsageError(f"{name} is not published for {known.name}; published settings: {there}")
    key = known.domain_spellings.get(benchmarks.plain(target))
    if key is None:
        raise UsageError(unknown_name(f"domain of {known.name}", target, [*known.domains, *known.domains.values()]))
    entry = document["settings"][name][key]
    classes = document["classes"]
    counts = {source: dict(zip(classes, row, strict=True)) for source, row in entry["counts"].items()}
    return Setting(name, key, counts, entry["many"], entry["few"], entry["validation"])


def paper_generator(setting: str, benchmark: str) -> CountsGenerator:
    """The generator with the parameters that made the paper's setting on this benchmark."""
    name, benchmark = canonical_setting(setting), benchmarks.get_benchmark(benchmark).name
    if (name, benchmark) not in _PARAMETERS:
        known = ", ".join(sorted({f"{s} on {b}" for s, b in _PARAMETERS}))
        raise UsageError(f"The paper has no generator parameters for {name} on {benchmark}; it has them for {known}.")
    return _PARAMETERS[name, benchmark]

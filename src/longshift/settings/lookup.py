"""From what a user says ("Duality", "art", a file of counts) to the setting for a dataset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from longshift.data import Manifest, benchmarks
from longshift.errors import LongshiftError, UsageError, unknown_name
from longshift.settings.generators import GENERATORS, Generator, TailGenerator
from longshift.settings.own_counts import explicit_setting, read_counts
from longshift.settings.published_counts import published, published_settings
from longshift.settings.setting import (
    NO_TARGET,
    SETTING_NAMES,
    Counts,
    Setting,
    as_counts,
    canonical_setting,
    held_for_validation,
)
from longshift.settings.shots import terciles
from longshift.settings.split import usable_counts, usable_table

Wanted = str | Path | Counts | Setting | Generator
NO_BENCHMARK = "none"


def setting_for(
    manifest: Manifest,
    setting: Wanted,
    target: str,
    *,
    benchmark: str | None = None,
    ratio: float | None = None,
    validation: int | None = None,
    third: bool = False,
) -> Setting:
    """The setting for a dataset and a target domain, in the dataset's own names.

    `setting` is a name (published counts if the dataset is a benchmark, else generated from its own counts, those of
    samples that may be trained on), a file of counts (.json, .csv), counts as a mapping, a generator or a ready
    setting. `benchmark` says which benchmark the dataset is ("none": not one); by default it is recognised by its
    classes and domains. A stated `ratio` (largest over smallest class) always generates. `validation` is per class and
    source. With the target "" no domain is held out, and no sample is kept back for a test. `third` (for generated
    settings): validation takes a third of a small class at most, as `make_split` then does.
    """
    known = recognise(manifest, benchmark)
    goal = find_target(manifest, target, known)
    if isinstance(setting, Setting):
        if setting.target != goal:
            raise UsageError(f"the given setting is for the target {setting.target!r}, but {goal!r} was asked for")
        made = setting
    elif isinstance(setting, str) and not _is_counts_file(setting):
        made = _named(manifest, canonical_setting(setting), goal, known, ratio, validation, third)
        ratio = None
    elif isinstance(setting, (str, Path)):
        made = _explicit(manifest, read_counts(Path(setting)), goal, validation)
    elif isinstance(setting, Mapping):
        made = _explicit(manifest, {"counts": setting}, goal, validation)
    else:
        made = setting.generate(usable_counts(manifest), goal)
    if ratio is not None:
        raise UsageError("a ratio goes with a setting's name; these counts are given already")
    return made if validation is None else replace(made, validation=validation)


def recognise(manifest: Manifest, benchmark: str | None = None) -> str | None:
    """The benchmark that a dataset is: the one declared (an error if it cannot be), or the one its names tell."""
    if benchmark is not None and benchmark.casefold() == NO_BENCHMARK:
        return None
    if benchmark is not None:
        name = benchmarks.get(benchmark).name
        _check_names(manifest, name)
        return name
    for name in benchmarks.all_benchmarks():
        try:
            _check_names(manifest, name)
        except LongshiftError:
            continue
        return name
    return None


def find_target(manifest: Manifest, target: str, benchmark: str | None = None) -> str:
    """The dataset's own name of a domain given in any case or, in a benchmark, by its short name ("A")."""
    if target in manifest.domain_names or target == NO_TARGET:
        return target
    spellings = {benchmarks.plain(name): name for name in manifest.domain_names}
    if benchmark is not None:
        own = benchmarks.identify_domains(manifest, benchmark)
        spellings |= {text: own[key] for text, key in benchmarks.get(benchmark).domain_spellings.items()}
    found = spellings.get(benchmarks.plain(target))
    if found is None:
        raise UsageError(unknown_name(f"domain of {manifest.name}", target, manifest.domain_names))
    return found


def default_validation(manifest: Manifest, target: str) -> int:
    """A third of the smallest class of a source, but 1 at least and 5 at most."""
    sources = [i for i, name in enumerate(manifest.domain_names) if name != target]
    table = usable_table(manifest)[sources]
    smallest = int(table[table > 0].min()) if (table > 0).any() else 0
    return min(max(smallest // 3, 1), 5)


def _named(
    manifest: Manifest,
    name: str,
    target: str,
    benchmark: str | None,
    ratio: float | None,
    validation: int | None,
    third: bool,
) -> Setting:
    if benchmark is not None and ratio is None and target != NO_TARGET and name in published_settings(benchmark):
        return _published(manifest, name, target, benchmark)
    if name not in GENERATORS:
        raise UsageError(
            f"{name} exists as published counts for VLCS and PACS only, and {manifest.name} is neither; "
            f"settings that are generated for any dataset: {', '.join(GENERATORS)}"
        )
    held = default_validation(manifest, target) if validation is None else validation
    options: dict[str, Any] = {"validation": held, "third": third}
    if ratio is not None:
        if not issubclass(GENERATORS[name], TailGenerator):
            with_ratio = ", ".join(n for n, cls in GENERATORS.items() if issubclass(cls, TailGenerator))
            raise UsageError(f"{name} takes no ratio; settings that do: {with_ratio}")
        options["ratio"] = ratio
    if target == NO_TARGET:
        return GENERATORS[name](**options, test=0.0).generate(usable_counts(manifest), target)
    return _leave_a_test(manifest, GENERATORS[name](**options).generate(usable_counts(manifest), target), third)


def _published(manifest: Manifest, name: str, target: str, benchmark: str) -> Setting:
    """The published counts under the dataset's own names of domains and classes."""
    domains = benchmarks.identify_domains(manifest, benchmark)
    classes = benchmarks.identify_classes(manifest, benchmark)
    short = next((key for key, own in domains.items() if own == target), None)
    if short is None:
        raise UsageError(f"{target} is not a domain of {benchmark}; those are {', '.join(domains.values())}")
    found = published(benchmark, name, short)
    counts = {domains[s]: {classes[k]: n for k, n in row.items()} for s, row in found.counts.items()}
    return replace(found, target=target, counts=counts)


def _check_names(manifest: Manifest, benchmark: str) -> None:
    """Raise if a dataset lacks domains or classes of a benchmark, or has classes beyond them."""
    benchmarks.identify_domains(manifest, benchmark)
    known = benchmarks.identify_classes(manifest, benchmark)
    extra = [name for name in manifest.classes if name not in known.values()]
    if extra:
        raise LongshiftError(
            f"{manifest.name} has {len(manifest.classes)} classes, but {benchmark} has {len(known)}; "
            f"not in {benchmark}: {', '.join(extra)}"
        )


def _explicit(manifest: Manifest, arguments: dict[str, Any], target: str, validation: int | None) -> Setting:
    if validation is not None:
        arguments = arguments | {"validation": validation}
    arguments = {"validation": default_validation(manifest, target)} | arguments
    return explicit_setting(target=target, **arguments)


def _leave_a_test(manifest: Manifest, setting: Setting, third: bool) -> Setting:
    """Where training and validation would take all of a class, training gives one sample up for the test."""
    totals = usable_table(manifest)
    left = totals - held_for_validation(totals, setting.validation, third) - 1
    room = as_counts(manifest.domain_names, manifest.classes, left)
    counts = {
        source: {name: min(n, max(room[source][name], min(n, 1))) for name, n in row.items()}
        for source, row in setting.counts.items()
    }
    if counts == setting.counts:
        return setting
    fitted = replace(setting, counts=counts)
    many, few = terciles(np.asarray(fitted.table()))
    return replace(fitted, many=many, few=few)


def _is_counts_file(text: str) -> bool:
    return Path(text).suffix.lower() in (".json", ".csv") and text.casefold() not in map(str.casefold, SETTING_NAMES)

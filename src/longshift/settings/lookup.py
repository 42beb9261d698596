"""Find the setting for a dataset from what a user gives: "Duality", "art", a file of counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from longshift.array_types import IntArray
from longshift.data import Manifest, benchmarks, find_copies
from longshift.errors import LongshiftError, UsageError, unknown_name
from longshift.settings.generators import GENERATORS, Generator, TailGenerator, canonical_setting, setting_names
from longshift.settings.own_counts import explicit_setting, read_counts
from longshift.settings.published_counts import published, published_settings
from longshift.settings.setting import (
    NATURAL_SHARE,
    NO_TARGET,
    Counts,
    Setting,
    as_counts,
    held_for_validation,
    terciles,
    usable_counts,
    usable_table,
)

Wanted = str | Path | Counts | Setting | Generator
NO_BENCHMARK = "none"


def setting_for(
    manifest: Manifest,
    setting: Wanted,
    target: str,
    *,
    benchmark: str | None = None,
    ratio: float | None = None,
    validation: float | None = None,
    third: bool = False,
) -> Setting:
    """Find or make the setting for a dataset and a target domain, in the dataset's own names.

    Args:
        manifest: The dataset.
        setting: A name (the published counts if the dataset is a benchmark that has them, else generated from the
            samples that may be used for training), a file of counts (.json, .csv), a mapping of counts, a generator or
            a ready setting.
        target: The domain that is held out. With "" no domain is held out and no sample is reserved for a test.
        benchmark: The benchmark that the dataset is ("none": it is not one); by default it is recognized by its classes
            and domains.
        ratio: Ratio of the largest to the smallest class. With a ratio, the setting is always generated.
        validation: Validation samples per class and source, or for "Natural" a share of their groups (below 1); 0.2 is
            its default on your own data.
        third: For generated settings: validation takes at most a third of a small class, as in `make_split`.

    Returns:
        The setting.

    Raises:
        UsageError: If a name is unknown, or the parts contradict each other.

    Example:
        >>> from longshift.data import load_dataset
        >>> digits = load_dataset("digits")

        >>> setting_for(digits, "TotalHeavyTail", "ink").target
        'ink'
    """
    if validation is not None and validation >= 1:
        validation = int(validation)  # the command line gives 5.0
    known = recognize(manifest, benchmark)
    goal = find_target(manifest, target, known)
    if isinstance(setting, Setting):
        if setting.target != goal:
            raise UsageError(f"Expected a setting for the target {goal!r}, got one for {setting.target!r}.")
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
        raise UsageError("Expected the name of a setting with `ratio`, got counts, which have their own ratio.")
    return made if validation is None else replace(made, validation=validation)


def recognize(manifest: Manifest, benchmark: str | None = None) -> str | None:
    """The benchmark that a dataset is: the declared one (an error if names differ), or the one with the same names."""
    if benchmark is not None and benchmark.casefold() == NO_BENCHMARK:
        return None
    if benchmark is not None:
        name = benchmarks.get_benchmark(benchmark).name
        _check_names(manifest, name)
        return name
    for name in benchmarks.all_benchmarks():
        try:
            _check_names(manifest, name)
        except LongshiftError:
            continue
        return name
    return None


def samples_kept_together(manifest: Manifest, cache: Path | None = None) -> IntArray | None:
    """The number of each sample's group in your own data, which a split keeps in one part; None without groups.

    A group has the samples with one value in the group column, and their copies (as `find_copies`). None for
    benchmarks, by the names of their domains and classes: their splits are published.

    Args:
        manifest: The dataset.
        cache: Where hashes of files are kept, by default `$LONGSHIFT_CACHE`.

    Returns:
        Numbers (N,), or None.

    Example:
        >>> from longshift.data import Row
        >>> rows = [Row("north", "cat", "1.png", group="p1"), Row("north", "cat", "2.png", group="p1")]
        >>> samples_kept_together(Manifest.from_rows("pets", None, rows))
        array([0, 0])
    """
    if recognize(manifest) is not None:
        return None
    copies = find_copies(manifest, cache)
    if manifest.groups is None:
        return copies
    from scipy.sparse import coo_array  # takes long to import
    from scipy.sparse.csgraph import connected_components

    n = len(manifest)
    first: dict[str, int] = {}
    same = [first.setdefault(group, i) if group else i for i, group in enumerate(manifest.groups)]
    links = np.concatenate([same, np.arange(n) if copies is None else copies])
    graph = coo_array((np.ones(2 * n), (np.tile(np.arange(n), 2), links)), shape=(n, n))
    return connected_components(graph, directed=False)[1].astype(np.int64)


def find_target(manifest: Manifest, target: str, benchmark: str | None = None) -> str:
    """The dataset's own name for a domain given in any case or, in a benchmark, by its short name ("A")."""
    if target in manifest.domain_names or target == NO_TARGET:
        return target
    spellings = {benchmarks.plain(name): name for name in manifest.domain_names}
    if benchmark is not None:
        own = benchmarks.identify_domains(manifest, benchmark)
        spellings |= {text: own[key] for text, key in benchmarks.get_benchmark(benchmark).domain_spellings.items()}
    found = spellings.get(benchmarks.plain(target))
    if found is None:
        raise UsageError(unknown_name(f"domain of {manifest.name}", target, manifest.domain_names))
    return found


def default_validation(manifest: Manifest, target: str) -> int:
    """A third of the smallest class of a source, at least 1 and at most 5."""
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
    validation: float | None,
    third: bool,
) -> Setting:
    if benchmark is not None and ratio is None and target != NO_TARGET and name in published_settings(benchmark):
        return _published(manifest, name, target, benchmark)
    if name not in GENERATORS:
        raise UsageError(
            f"{name} exists only as published counts for VLCS and PACS, and {manifest.name} is neither; "
            f"settings that can be generated for any dataset: {', '.join(GENERATORS)}"
        )
    if validation is None:
        own_data = name == "Natural" and benchmark is None
        validation = NATURAL_SHARE if own_data else default_validation(manifest, target)
    options: dict[str, Any] = {"validation": validation, "third": third}
    if ratio is not None:
        if not issubclass(GENERATORS[name], TailGenerator):
            with_ratio = ", ".join(n for n, cls in GENERATORS.items() if issubclass(cls, TailGenerator))
            raise UsageError(f"{name} has no ratio; settings with one: {with_ratio}")
        options["ratio"] = ratio
    if target == NO_TARGET or 0 < validation < 1:  # all samples that are not trained on validate
        return GENERATORS[name](**options, test=0.0).generate(usable_counts(manifest), target)
    return _leave_a_test(manifest, GENERATORS[name](**options).generate(usable_counts(manifest), target), third)


def _published(manifest: Manifest, name: str, target: str, benchmark: str) -> Setting:
    """The published counts with the dataset's own names for domains and classes."""
    domains = benchmarks.identify_domains(manifest, benchmark)
    classes = benchmarks.identify_classes(manifest, benchmark)
    short = next((key for key, own in domains.items() if own == target), None)
    if short is None:
        raise UsageError(f"Expected a domain of {benchmark} ({', '.join(domains.values())}), got {target}.")
    found = published(benchmark, name, short)
    counts = {domains[s]: {classes[k]: n for k, n in row.items()} for s, row in found.counts.items()}
    return replace(found, target=target, counts=counts)


def _check_names(manifest: Manifest, benchmark: str) -> None:
    """Raise if a dataset lacks domains or classes of a benchmark, or has other classes."""
    benchmarks.identify_domains(manifest, benchmark)
    known = benchmarks.identify_classes(manifest, benchmark)
    extra = [name for name in manifest.classes if name not in known.values()]
    if extra:
        raise LongshiftError(
            f"{manifest.name} has {len(manifest.classes)} classes, but {benchmark} has {len(known)}; "
            f"not in {benchmark}: {', '.join(extra)}"
        )


def _explicit(manifest: Manifest, arguments: dict[str, Any], target: str, validation: float | None) -> Setting:
    if validation is not None:
        arguments = arguments | {"validation": validation}
    arguments = {"validation": default_validation(manifest, target)} | arguments
    return explicit_setting(target=target, **arguments)


def _leave_a_test(manifest: Manifest, setting: Setting, third: bool) -> Setting:
    """Where training and validation would use all samples of a class, leave one of them for the test."""
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
    return Path(text).suffix.lower() in (".json", ".csv") and text.casefold() not in map(str.casefold, setting_names())

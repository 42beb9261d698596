"""The sweep file: what is compared, on what, how often and for how long. Every mistake in it is reported at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

from longshift.errors import ConfigError, LongshiftError, UsageError
from longshift.io import read_toml
from longshift.methods import all_methods, get_method, methods_without_presets
from longshift.progress import Bar, no_bar
from longshift.settings import find_target
from longshift.sweep.sweep_file_models import ALL, DatasetTable, SweepTable, read_tables
from longshift.sweep.sweep_folder import SweepFolder
from longshift.training import OpenDataset, RunConfig, Runtime, parse_run_config


@dataclass(frozen=True)
class Row:
    """What has a row in the tables: a method, or a variant of one."""

    name: str
    values: dict[str, Any]  # run keys
    where: str  # the table of the file that is about it


@dataclass(frozen=True)
class Dataset:
    """A dataset of the sweep with names resolved."""

    name: str
    targets: tuple[str, ...]
    version: str  # of its files, see `longshift.data.data_version`
    benchmark: bool


@dataclass(frozen=True)
class Case:
    """A resolved run up to its seeds."""

    dataset: str
    method: str
    config: RunConfig


@dataclass(frozen=True)
class Sweep:
    """A checked sweep file: what is compared, and every run of it up to the seeds."""

    folder: SweepFolder
    datasets: tuple[Dataset, ...]
    settings: tuple[str, ...]
    methods: tuple[str, ...]
    variants: tuple[str, ...]
    trials: tuple[int, ...]
    draws: int
    runtime: Runtime
    cases: tuple[Case, ...]


def read_sweep(directory: Path, bar: Bar = no_bar) -> Sweep:
    """Read and check DIR/sweep.toml; a `ConfigError` lists every mistake."""
    folder = SweepFolder(Path(directory))
    if not folder.file.exists():
        raise UsageError(f"no {folder.file}; write one with: longshift sweep init {directory}")
    table, mistakes = read_tables(raw := read_toml(folder.file), folder.path)
    mistakes += [f"{name}: is required" for name in ("datasets", "settings") if not raw.get(name)]
    mistakes += _name_mistakes(table)
    methods = tuple(_methods(table))
    if not methods and not table.variants and not mistakes:
        mistakes.append("methods: expected a method or [[variants]] to compare, got none")
    rows = _good_rows(list(_rows(table, methods)), mistakes)
    settings, runtime = tuple(dict.fromkeys(table.settings)), Runtime(**asdict(table.runtime))
    datasets: list[Dataset] = []
    cases: list[Case] = []
    for entry in table.datasets:
        where = f"[[datasets]] {entry.name or Path(entry.path).name}"
        try:
            opened = OpenDataset(entry.path, cache=runtime.cache, bar=bar)
            dataset = _dataset(entry, table, opened, where, mistakes)
        except LongshiftError as error:
            mistakes.append(f"{where}: {error}")
            continue
        if dataset.name in [other.name for other in datasets]:
            mistakes.append(f"{where}: two datasets have the name {dataset.name!r}; give one another `name`")
        datasets.append(dataset)
        for setting, target, row in product(settings, dataset.targets, rows):
            place = {"benchmark": entry.benchmark, "setting": setting, "target": target}
            try:
                cases.append(Case(dataset.name, row.name, opened.resolve({**row.values, **place}).config))
            except LongshiftError as error:
                mistakes.append(f"{where}, setting {setting}: {error}")
    if mistakes:
        raise ConfigError(list(dict.fromkeys(mistakes)), str(folder.file))
    return Sweep(
        SweepFolder(folder.path, Path(table.store)), tuple(datasets), settings, methods,
        tuple(variant.name for variant in table.variants), table.trials, table.draws,
        runtime, tuple(cases),
    )  # fmt: skip


def _methods(table: SweepTable) -> Iterable[str]:
    """The methods, each once; "all" may stand in a list, next to a preset."""
    names = [every for name in table.methods for every in (methods_without_presets() if name == ALL else [name])]
    return dict.fromkeys(names)


def _name_mistakes(table: SweepTable) -> list[str]:
    """Variants with the name of a method or of another variant."""
    known = [cls.info for cls in all_methods().values()] + [get_method(name).info for name in _methods(table)]
    taken = {word.casefold(): "a method" for info in known for word in (info.name, info.title)}
    found = []
    for variant in table.variants:
        if owner := taken.get(variant.name.casefold()):
            found.append(f"[[variants]] {variant.name}: name: {owner} has this name; choose another")
        taken[variant.name.casefold()] = "another variant"
    return found


def _rows(table: SweepTable, methods: Iterable[str]) -> Iterator[Row]:
    """What is compared, with its run keys: [run], the method's own on top, then the variant's."""
    run = table.run.given()
    own = {get_method(name).info.name: keys.given() for name, keys in table.overrides.items()}
    for method in methods:
        name = get_method(method).info.name
        values = merged(common_values(run, method), own.get(name, {}), {"method": method})
        yield Row(name, values, f"[overrides.{name}]")
    for variant in table.variants:
        above = own.get(get_method(variant.method).info.name, {})
        values = merged(common_values(run, variant.method), above, variant.given(), {"method": variant.method})
        yield Row(variant.name, values, f"[[variants]] {variant.name}:")


def merged(*tables: Mapping[str, Any]) -> dict[str, Any]:
    """Run keys with later tables on top of earlier ones; hyper-parameters and style key by key."""
    nested: dict[str, dict[str, Any]] = {"hparams": {}, "style": {}}
    values: dict[str, Any] = {}
    for one in tables:
        for name, kept in nested.items():
            kept |= one.get(name) or {}
        values |= one
    return {**values, **{name: kept for name, kept in nested.items() if kept or name == "hparams"}}


def common_values(run: Mapping[str, Any], method: str) -> dict[str, Any]:
    """[run] as it is for one method: without those of the common hyper-parameters that have no effect on it."""
    unused = get_method(method).Config.not_used()
    return {**run, "hparams": {name: v for name, v in run.get("hparams", {}).items() if name not in unused}}


def _good_rows(rows: list[Row], mistakes: list[str]) -> list[Row]:
    """The rows whose keys go together; a mistake in all of them is one of [run]."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        try:
            parse_run_config({**row.values, "target": ""})
        except ConfigError as error:
            for text in error.mistakes:
                found.setdefault(text, []).append(row)
    for text, wrong in found.items():
        places = ["[run]"] if len(wrong) == len(rows) > 1 else [row.where for row in wrong]
        mistakes += [f"{place} {text}" for place in places]
    bad = {row.name for wrong in found.values() for row in wrong}
    return [row for row in rows if row.name not in bad]


def _dataset(entry: DatasetTable, table: SweepTable, opened: OpenDataset, where: str, mistakes: list[str]) -> Dataset:
    """Name and targets of a dataset; targets that it does not have are mistakes."""
    known = opened.recognized_as(entry.benchmark)
    wanted = entry.targets or table.targets
    targets: list[str] = []
    for name in opened.manifest.domain_names if wanted == [ALL] else wanted:
        try:
            targets.append(find_target(opened.manifest, name, known))
        except LongshiftError as error:
            mistakes.append(f"{where}: targets: {error}")
    published = entry.benchmark or (known if table.run.ratio is None else None)
    name = entry.name or published or opened.manifest.name
    return Dataset(name, tuple(dict.fromkeys(targets)), opened.version, published is not None)

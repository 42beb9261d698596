"""The sweep file: what is compared, on what, how often and for how long. Every mistake in it is reported at once."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, ValidationError, create_model

from longshift.data import load_dataset
from longshift.data.digits import NAME as DIGITS
from longshift.data.manifest import Manifest
from longshift.engine.config import RunConfig, Runtime, parse_run_config
from longshift.errors import ConfigError, LongshiftError, UsageError, unknown_name
from longshift.methods import plugins, registry
from longshift.settings import canonical_setting, find_target, recognise, setting_for
from longshift.sweep.layout import SweepFolder, absolute
from longshift.toml import read_toml

MOST_DRAWS = 1000  # so that the hyper-parameter seeds of two trials never meet, see `seeds.hparam_seed`
# What the expansion decides; a [run] table may not.
EXPANDED = ("data", "benchmark", "setting", "target", "method", "split_seed", "hparam_seed", "train_seed")


class DatasetTable(BaseModel):
    """One of the [[datasets]]."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str = Field(..., min_length=1)
    name: str | None = None
    benchmark: Literal["VLCS", "PACS", "OfficeHome", "DomainNet"] | None = None
    targets: Literal["all"] | list[str] | None = None


def _runtime_table() -> type[BaseModel]:
    """[runtime]: the fields of `Runtime`, except the device, which the launcher gives. Weights are not kept."""
    kinds = {**get_type_hints(Runtime), "checkpoint_every": NonNegativeInt}
    defaults: dict[str, Any] = {f.name: f.default for f in dataclasses.fields(Runtime)} | {"keep_model": False}
    fields: dict[str, Any] = {name: (kinds[name], defaults[name]) for name in defaults if name != "device"}
    return create_model("RuntimeTable", __config__=ConfigDict(extra="forbid", frozen=True), **fields)


RuntimeTable = _runtime_table()


class SweepTable(BaseModel):
    """The whole file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    datasets: list[DatasetTable] = Field(..., min_length=1)
    settings: list[str] = Field(..., min_length=1)
    targets: Literal["all"] | list[str] = "all"
    methods: Literal["all"] | list[str] = "all"
    trials: int = Field(3, ge=1, le=1000)
    draws: int = Field(10, ge=1, le=MOST_DRAWS)
    store: str = "."
    run: dict[str, Any] = Field(default_factory=dict)
    overrides: dict[str, dict[str, Any]] = Field(default_factory=dict)
    runtime: dict[str, Any] = Field(default_factory=dict)


@dataclass(frozen=True)
class Dataset:
    """A dataset of the sweep with names resolved."""

    name: str
    data: str
    benchmark: str | None
    targets: tuple[str, ...]


@dataclass(frozen=True)
class Sweep:
    """A checked sweep file, names in their proper spelling."""

    folder: SweepFolder
    datasets: tuple[Dataset, ...]
    settings: tuple[str, ...]
    methods: tuple[str, ...]
    trials: int
    draws: int
    run: Mapping[str, Any]
    overrides: Mapping[str, Mapping[str, Any]]
    runtime: Runtime

    def values(self, method: str) -> dict[str, Any]:
        """The run keys of a method: those of [run] with its own on top, hyper-parameters merged."""
        own = self.overrides.get(registry.get(method).info.name, {})
        hparams = {**self.run.get("hparams", {}), **own.get("hparams", {})}
        return {**self.run, **own, "hparams": hparams}


def read_sweep(directory: Path) -> Sweep:
    """Read and check DIR/sweep.toml; a `ConfigError` lists every mistake."""
    folder = SweepFolder(Path(directory))
    if not folder.file.exists():
        raise UsageError(f"no {folder.file}; write one with: longshift sweep init {directory}")
    raw = read_toml(folder.file)
    mistakes: list[str] = []
    table: SweepTable | None = None
    try:
        table = SweepTable.model_validate(raw)
    except ValidationError as error:
        mistakes += _structure(error, SweepTable)
    runtime = _runtime(raw.get("runtime", {}), folder.path, mistakes)
    # Each part is looked at on its own, so that a slip in one does not hide those in another.
    methods = _methods(raw.get("methods", "all"), folder.path, mistakes)
    settings = _settings(raw.get("settings"), folder.path, mistakes)
    overrides = _overrides(raw.get("overrides", {}), folder.path, mistakes)
    _run_keys(raw.get("run", {}), methods, overrides, mistakes)
    datasets = _datasets(raw, folder.path, settings, raw.get("run", {}), mistakes)
    if mistakes or table is None:
        raise ConfigError(list(dict.fromkeys(mistakes)), str(folder.file))
    run = dict(table.run)
    if isinstance(run.get("weights"), str):
        run["weights"] = absolute(run["weights"], folder.path)
    return Sweep(
        SweepFolder(folder.path, Path(absolute(table.store, folder.path))),
        datasets, settings, methods, table.trials, table.draws, run, overrides, runtime,
    )  # fmt: skip


def _structure(error: ValidationError, model: type[BaseModel], where: str = "") -> list[str]:
    mistakes = []
    for problem in error.errors():
        # Branches of "all" or a list are told apart by pydantic in the path; the user only knows the key.
        parts = [str(p) for p in problem["loc"] if not str(p).startswith(("literal[", "list["))]
        name = ".".join(parts)
        if problem["type"] == "extra_forbidden":
            known = DatasetTable.model_fields if parts[0] == "datasets" else model.model_fields
            place = "[[datasets]] " if parts[0] == "datasets" else where
            mistakes.append(place + unknown_name("key", parts[-1], known))
        elif problem["type"] == "missing":
            mistakes.append(f"{where}{name}: is required")
        elif problem["type"] == "literal_error" and parts[-1] in ("methods", "targets"):
            mistakes.append(f'{name}: expected "all" or a list of names, got {problem["input"]!r}')
        elif not (problem["type"] == "list_type" and parts[-1] in ("methods", "targets")):
            mistakes.append(f"{where}{name}: {problem['msg'].lower()}, got {problem['input']!r}")
    return mistakes


def _runtime(table: object, base: Path, mistakes: list[str]) -> Runtime:
    try:
        values = RuntimeTable.model_validate(table if isinstance(table, Mapping) else {}).model_dump()
    except ValidationError as error:
        mistakes += _structure(error, RuntimeTable, "[runtime] ")
        return Runtime()
    if values["cache"] is not None:
        values["cache"] = Path(absolute(str(values["cache"]), base))
    return Runtime(**values)


def _names(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _methods(value: object, base: Path, mistakes: list[str]) -> tuple[str, ...]:
    if value == "all":
        return tuple(registry.methods())
    return tuple(dict.fromkeys(_each(_names(value), lambda name: _method_name(name, base), "methods", mistakes)))


def _method_name(name: str, base: Path) -> str:
    """The registered name; a method in a file of the user's keeps its path, which is how a worker finds it."""
    if plugins.is_file_spec(name):
        path, _, attribute = name.rpartition(":")
        name = f"{absolute(path, base)}:{attribute}"
        registry.get(name)
        return name
    return registry.get(name).info.name


def _settings(value: object, base: Path, mistakes: list[str]) -> tuple[str, ...]:
    def check(name: str) -> str:
        if Path(name).suffix.lower() in (".json", ".csv"):
            return absolute(name, base)
        return canonical_setting(name)

    return tuple(dict.fromkeys(_each(_names(value), check, "settings", mistakes)))


def _each(names: Iterable[str], check: Any, where: str, mistakes: list[str]) -> list[str]:
    found: list[str] = []
    for name in names:
        try:
            found.append(check(name))
        except LongshiftError as error:
            mistakes.append(f"{where}: {error}")
    return found


def _overrides(value: object, base: Path, mistakes: list[str]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for name, table in value.items() if isinstance(value, Mapping) else ():
        try:
            proper = registry.get(_method_name(name, base)).info.name
        except LongshiftError as error:
            mistakes.append(f"overrides: {error}")
            continue
        if isinstance(table, Mapping):
            found[proper] = dict(table)
    return found


def _run_keys(
    run: object, methods: Iterable[str], overrides: Mapping[str, Mapping[str, Any]], mistakes: list[str]
) -> None:
    common = dict(run) if isinstance(run, Mapping) else {}
    shared = dict(common.pop("hparams", {}) or {}) if isinstance(common.get("hparams", {}), Mapping) else {}
    known = _table_mistakes("run", common, mistakes)
    for method in methods:
        name = registry.get(method).info.name
        own = dict(overrides.get(name, {}))
        hparams = own.pop("hparams", {})
        good = {**known, **_table_mistakes(f"overrides.{name}", own, mistakes)}
        both = {**shared, **(hparams if isinstance(hparams, Mapping) else {})}
        try:
            parse_run_config({**good, "method": method, "target": "-", "hparams": both})
        except ConfigError as error:
            mistakes.extend(f"[overrides.{name}] {m}" for m in error.mistakes)


def _table_mistakes(name: str, table: dict[str, Any], mistakes: list[str]) -> dict[str, Any]:
    """Complain about the run keys of one table; the good ones come back."""
    good: dict[str, Any] = {}
    for key, value in table.items():
        if key in EXPANDED:
            mistakes.append(f"[{name}] {key}: follows from the sweep's own keys and cannot be set here")
            continue
        try:
            parse_run_config({key: value, "target": "-", "method": "erm"})
        except ConfigError as error:
            mistakes.extend(f"[{name}] {m}" for m in error.mistakes)
        else:
            good[key] = value
    return good


def _datasets(
    raw: Mapping[str, Any], base: Path, settings: tuple[str, ...], run: object, mistakes: list[str]
) -> tuple[Dataset, ...]:
    found: list[Dataset] = []
    tables = raw.get("datasets")
    for number, item in enumerate(tables if isinstance(tables, list) else ()):
        try:
            table = DatasetTable.model_validate(item)
        except ValidationError:
            continue  # reported with the structure
        data = table.path if table.path == DIGITS else absolute(table.path, base)
        try:
            manifest = load_dataset(data)
            known = recognise(manifest, table.benchmark) if table.benchmark else None
        except LongshiftError as error:
            mistakes.append(f"datasets[{number}]: {error}")
            continue
        wanted = table.targets or raw.get("targets", "all")
        names = list(manifest.domain_names) if wanted == "all" else _names(wanted)
        targets = _each(
            names, lambda name, m=manifest, k=known: find_target(m, name, k), f"datasets[{number}].targets", mistakes
        )
        ratio = run.get("ratio") if isinstance(run, Mapping) else None
        _possible(manifest, settings, targets, table.benchmark, ratio, f"datasets[{number}]", mistakes)
        name = table.name or table.benchmark or manifest.name
        if name in [other.name for other in found]:
            mistakes.append(f"datasets[{number}]: two datasets are called {name!r}; give one a `name` of its own")
        found.append(Dataset(name, data, table.benchmark, tuple(dict.fromkeys(targets))))
    return tuple(found)


def _possible(
    manifest: Manifest, settings: Iterable[str], targets: list[str], benchmark: str | None, ratio: object,
    where: str, mistakes: list[str],
) -> None:  # fmt: skip
    """Whether each setting can be had for the dataset; one target tells."""
    for setting in settings:
        for target in targets[:1]:
            try:
                setting_for(
                    manifest, setting, target, benchmark=benchmark, ratio=ratio if isinstance(ratio, float) else None
                )
            except LongshiftError as error:
                mistakes.append(f"{where}, setting {setting}: {error}")


def run_config(values: Mapping[str, Any]) -> RunConfig:
    """A run's configuration from values that were checked before."""
    return RunConfig.model_validate(dict(values))

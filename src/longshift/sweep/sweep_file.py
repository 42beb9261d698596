"""The sweep file: what is compared, on what, how often and for how long. Every mistake in it is reported at once."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, ValidationError, create_model, field_validator

from longshift.data import DIGITS, Manifest, holds_vectors, load_dataset
from longshift.errors import ConfigError, LongshiftError, UsageError, unknown_name
from longshift.methods import get_method, methods_without_presets
from longshift.settings import canonical_setting, find_target, recognise, setting_for
from longshift.sweep import run_keys
from longshift.sweep.sweep_folder import SweepFolder, absolute
from longshift.sweep.variants import Variant, read_variants
from longshift.toml import read_toml
from longshift.training import RunConfig, Runtime

MOST_DRAWS = 1000  # so that the hyper-parameter seeds of two trials never meet, see `seeds.hparam_seed`
MOST_TRIALS = 1000
TrialNumber = Annotated[int, Field(ge=0, lt=MOST_TRIALS)]


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
    variants: list[dict[str, Any]] = Field(default_factory=list)
    trials: tuple[TrialNumber, ...] = Field((0, 1, 2), min_length=1)  # in the file also their number, from trial 0 on
    draws: int = Field(10, ge=1, le=MOST_DRAWS)
    store: str = "."
    run: dict[str, Any] = Field(default_factory=dict)
    overrides: dict[str, dict[str, Any]] = Field(default_factory=dict)
    runtime: dict[str, Any] = Field(default_factory=dict)

    @field_validator("trials", mode="before")
    @classmethod
    def _numbered(cls, value: object) -> object:
        if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_TRIALS:
            return tuple(range(value))
        if not isinstance(value, list):
            raise ValueError(f"expected a number of trials from 1 to {MOST_TRIALS}, or a list such as [3, 4, 5]")
        return tuple(dict.fromkeys(value))


@dataclass(frozen=True)
class Dataset:
    """A dataset of the sweep with names resolved."""

    name: str
    data: str
    benchmark: str | None  # as declared
    recognised: str | None  # what its names tell
    targets: tuple[str, ...]

    def benchmark_of(self, ratio: float | None) -> str | None:
        """The benchmark of a run, as `longshift train` has it: counts of a stated ratio are not the published ones."""
        return self.benchmark or (self.recognised if ratio is None else None)


@dataclass(frozen=True)
class Sweep:
    """A checked sweep file, names in their proper spelling."""

    folder: SweepFolder
    datasets: tuple[Dataset, ...]
    settings: tuple[str, ...]
    methods: tuple[str, ...]
    trials: tuple[int, ...]
    draws: int
    run: Mapping[str, Any]
    overrides: Mapping[str, Mapping[str, Any]]
    runtime: Runtime
    variants: tuple[Variant, ...] = ()

    def compared(self) -> list[tuple[str, dict[str, Any]]]:
        """What has a row in the tables, with its run keys: [run], the method's own on top, then the variant's."""
        found = []
        for variant in (*(Variant("", method, {}) for method in self.methods), *self.variants):
            proper = get_method(variant.method).info.name
            common = run_keys.shared(self.run, variant.method)
            values = run_keys.merged(common, self.overrides.get(proper, {}), variant.values)
            found.append((variant.name or proper, {**values, "method": variant.method}))
        return found


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
    overrides = run_keys.overrides(raw.get("overrides"), folder.path, mistakes)
    run = run_keys.table(raw.get("run"))
    run_keys.check_methods(run, methods, overrides, mistakes)
    variants = read_variants(raw.get("variants"), folder.path, run, methods, overrides, mistakes)
    if raw.get("methods") == [] and not raw.get("variants"):
        mistakes.append("methods: there is none to compare, and there are no [[variants]]")
    ratios = _ratios(run, methods, overrides, variants)
    datasets = _datasets(raw, folder.path, settings, run, ratios, mistakes)
    if mistakes or table is None:
        raise ConfigError(list(dict.fromkeys(mistakes)), str(folder.file))
    own = {name: run_keys.placed(keys, folder.path) for name, keys in overrides.items()}
    return Sweep(
        SweepFolder(folder.path, Path(absolute(table.store, folder.path))), datasets, settings, methods,
        table.trials, table.draws, run_keys.placed(run, folder.path), own, runtime, variants,
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
    names: list[str] = []
    for name in _names([value] if value == "all" else value):  # "all" may stand in a list, beside a preset
        names += methods_without_presets() if name.casefold() == "all" else [name]
    found = run_keys.each(names, lambda name: run_keys.method_name(name, base), "methods", mistakes)
    return tuple(dict.fromkeys(found))


def _settings(value: object, base: Path, mistakes: list[str]) -> tuple[str, ...]:
    def check(name: str) -> str:
        if Path(name).suffix.lower() in (".json", ".csv"):
            return absolute(name, base)
        return canonical_setting(name)

    return tuple(dict.fromkeys(run_keys.each(_names(value), check, "settings", mistakes)))


def _ratios(
    run: Mapping[str, Any], methods: Iterable[str], overrides: Mapping[str, Mapping[str, Any]],
    variants: Iterable[Variant],
) -> list[float | None]:  # fmt: skip
    """Every ratio that some job has, once (without any method, that of [run])."""
    compared = (*(Variant("", method, {}) for method in methods), *variants)
    found = [
        run_keys.merged(run, overrides.get(get_method(v.method).info.name, {}), v.values).get("ratio")
        for v in compared
    ]  # fmt: skip
    return list(dict.fromkeys(map(_ratio, found or [run.get("ratio")])))


def _ratio(given: object) -> float | None:
    """The ratio of a run; what is none is reported with the keys."""
    try:
        value = float(given) if isinstance(given, (int, float, str)) else 0.0
    except ValueError:
        return None
    return value if value > 1 else None


def _datasets(
    raw: Mapping[str, Any], base: Path, settings: tuple[str, ...], run: Mapping[str, Any],
    ratios: Sequence[float | None], mistakes: list[str],
) -> tuple[Dataset, ...]:  # fmt: skip
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
            images = data != DIGITS and not holds_vectors(data)
            known = recognise(manifest, table.benchmark) if table.benchmark or images else None
        except LongshiftError as error:
            mistakes.append(f"datasets[{number}]: {error}")
            continue
        wanted = table.targets or raw.get("targets", "all")
        names = list(manifest.domain_names) if wanted == "all" else _names(wanted)
        find = partial(find_target, manifest, benchmark=known)
        targets = run_keys.each(names, find, f"datasets[{number}].targets", mistakes)
        ratio = run.get("ratio")
        _possible(manifest, settings, targets, table.benchmark, ratios, f"datasets[{number}]", mistakes)
        name = table.name or table.benchmark or (known if ratio is None else None) or manifest.name
        if name in [other.name for other in found]:
            mistakes.append(f"datasets[{number}]: two datasets are called {name!r}; give one a `name` of its own")
        found.append(Dataset(name, data, table.benchmark, known, tuple(dict.fromkeys(targets))))
    return tuple(found)


def _possible(
    manifest: Manifest, settings: Iterable[str], targets: list[str], benchmark: str | None,
    ratios: Sequence[float | None], where: str, mistakes: list[str],
) -> None:  # fmt: skip
    """Whether each setting can be had for the dataset with each ratio; one target tells."""
    for setting, ratio in product(settings, ratios):
        for target in targets[:1]:
            try:
                setting_for(manifest, setting, target, benchmark=benchmark, ratio=ratio)
            except LongshiftError as error:
                mistakes.append(f"{where}, setting {setting}: {error}")


def run_config(values: Mapping[str, Any]) -> RunConfig:
    """A run's configuration from values that were checked before."""
    return RunConfig.model_validate(dict(values))

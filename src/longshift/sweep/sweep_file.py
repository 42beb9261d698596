"""The sweep file: what is compared, on what, how often and for how long.

Pydantic models check all that can be checked without the data and report all mistakes together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic.dataclasses import dataclass as checked_dataclass

from longshift.data import EMBEDDED, get_benchmark
from longshift.errors import ConfigError, LongshiftError, UsageError, unknown_name
from longshift.io import read_toml
from longshift.methods import all_methods, expected_and_got, get_method, methods_without_presets
from longshift.progress import Bar, no_bar
from longshift.settings import canonical_setting, find_target
from longshift.sweep.jobs import PER_TRIAL
from longshift.sweep.sweep_folder import SweepFolder, absolute, store_of
from longshift.training import OpenDataset, RunConfig, Runtime, split_of

MOST_TRIALS = 1000
ALL = "all"
# What the expansion decides; a table of run keys may not.
EXPANDED = ("data", "benchmark", "setting", "target", "method", "split_seed", "hparam_seed", "train_seed")
STRICT = ConfigDict(extra="forbid", frozen=True)


def _names(value: object) -> object:
    """A list of names; the word "all" stands for one."""
    if value != ALL and not isinstance(value, list):
        raise ValueError(f'expected "all" or a list of names, got {value!r}')
    return [ALL] if value == ALL else value


def _numbered(value: object) -> object:
    """Trials by their numbers, or how many there are, from trial 0 on."""
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_TRIALS:
        return tuple(range(value))
    if not isinstance(value, list):
        raise ValueError(
            f"expected a number of trials from 1 to {MOST_TRIALS}, or a list such as [3, 4, 5], got {value!r}"
        )
    return [item for place, item in enumerate(value) if item not in value[:place]]


def _path(value: str, info: ValidationInfo) -> str:
    """Paths are meant from the file's folder; names of datasets stay."""
    named = value in EMBEDDED or "://" in value
    return value if named else absolute(value, (info.context or {})["base"])


def _method(value: str) -> str:
    """The registered name of a method."""
    try:
        return ALL if value.casefold() == ALL else get_method(value).info.name
    except LongshiftError as error:
        raise ValueError(str(error)) from error  # which pydantic collects


def _every_method(names: list[str]) -> list[str]:
    """The methods, each once; "all" may stand in a list, next to a preset."""
    return list(dict.fromkeys(e for name in names for e in (methods_without_presets() if name == ALL else [name])))


def _setting(value: str, info: ValidationInfo) -> str:
    if Path(value).suffix.lower() in (".json", ".csv"):
        return _path(value, info)
    try:
        return canonical_setting(value)
    except LongshiftError as error:
        raise ValueError(str(error)) from error


def _row_name(value: object) -> object:
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise ValueError(f"expected a word or a few, got {value!r}")
    if "+" in value:
        raise ValueError('expected no "+", which marks the rows of averaged weights ("ndcl+ema")')
    return value


TrialNumber = Annotated[int, Field(ge=0, lt=MOST_TRIALS)]
Names = Annotated[list[str], BeforeValidator(_names)]
MethodName = Annotated[str, AfterValidator(_method)]
FilePath = Annotated[str, AfterValidator(_path)]


class DatasetTable(BaseModel):
    """One of the [[datasets]]."""

    model_config = STRICT

    path: FilePath = Field(..., min_length=1)
    name: str | None = None
    benchmark: str | None = None
    targets: Names | None = None

    @field_validator("benchmark")
    @classmethod
    def _known(cls, value: str | None) -> str | None:
        try:
            return None if value is None else get_benchmark(value).name
        except LongshiftError as error:
            raise ValueError(str(error)) from error


class RunTable(RunConfig):
    """[run] and [overrides.METHOD]: any key of a run that the sweep itself does not decide."""

    own_keys: ClassVar[tuple[str, ...]] = ()

    target: str = ""
    weights: FilePath | None = None

    @field_validator(*EXPANDED, mode="before")
    @classmethod
    def _not_expanded(cls, value: object, info: ValidationInfo) -> object:
        if info.field_name not in cls.own_keys:
            raise ValueError("follows from the sweep's own keys and cannot be set here")
        return value

    def given(self) -> dict[str, Any]:
        """The keys that the table has."""
        return self.model_dump(include=self.model_fields_set - {"name", "method"})


class VariantTable(RunTable):
    """One of the [[variants]]: a method again, with other values, as a row of its own."""

    own_keys: ClassVar[tuple[str, ...]] = ("method",)

    name: Annotated[str, BeforeValidator(_row_name)]
    method: MethodName


@checked_dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class RuntimeTable(Runtime):
    """[runtime]: weights are not kept unless asked for, and the launcher gives the device."""

    keep_model: bool = False

    @field_validator("cache")
    @classmethod
    def _from_file(cls, value: Path | None, info: ValidationInfo) -> Path | None:
        if value is None:
            return None
        base, path = (info.context or {})["base"], Path(_path(str(value), info))
        if not path.resolve().is_relative_to(base.resolve()):  # a stranger's sweep could fill any folder
            raise ValueError(f"expected a folder inside {base}, got {value}; name others by --cache")
        return path

    @field_validator("device", mode="before")
    @classmethod
    def _from_launcher(cls, value: object) -> object:
        raise ValueError("is an option of `longshift sweep run` and cannot be set here")


class SweepTable(BaseModel):
    """The whole file."""

    model_config = STRICT

    datasets: list[DatasetTable] = Field(min_length=1)
    settings: Annotated[
        list[Annotated[str, AfterValidator(_setting)]], AfterValidator(lambda names: list(dict.fromkeys(names)))
    ] = Field(min_length=1)
    targets: Names = Field(default_factory=lambda: [ALL])
    methods: Annotated[list[MethodName], BeforeValidator(_names), AfterValidator(_every_method)] = Field(
        [ALL], validate_default=True
    )
    variants: list[VariantTable] = Field(default_factory=list)
    trials: Annotated[tuple[TrialNumber, ...], BeforeValidator(_numbered)] = Field((0, 1, 2), min_length=1)
    draws: int = Field(10, ge=1, le=PER_TRIAL)
    store: FilePath = Field(".", validate_default=True)
    run: RunTable = Field(default_factory=RunTable)
    overrides: dict[MethodName, RunTable] = Field(default_factory=dict)
    runtime: RuntimeTable = Field(default_factory=RuntimeTable)

    @model_validator(mode="after")
    def _rows_have_their_own_names(self) -> SweepTable:
        known = [cls.info for cls in (*all_methods().values(), *map(get_method, self.methods))]
        taken = {word.casefold() for info in known for word in (info.name, info.title)}
        for variant in self.variants:
            if variant.name.casefold() in taken:
                raise ValueError(f"[[variants]] {variant.name}: name: a method or variant has this name already")
            taken.add(variant.name.casefold())
        if not self.methods and not self.variants:
            raise ValueError("methods: expected a method or [[variants]] to compare, got none")
        return self


def read_table(raw: Mapping[str, Any], folder: SweepFolder) -> SweepTable:
    """A sweep file without mistakes in it; what the data do not permit shows later."""
    try:
        return SweepTable.model_validate(raw, context={"base": folder.path})
    except ValidationError as error:
        mistakes: dict[str, str] = {}
        for problem in error.errors():
            place, text = _told(problem, raw)
            mistakes.setdefault(place, text)  # each branch of a union has an error of its own: one is enough
        raise ConfigError(list(mistakes.values()), str(folder.file)) from error


def _told(problem: Mapping[str, Any], raw: Mapping[str, Any]) -> tuple[str, str]:
    """The place of a mistake, and the mistake in words, below the name of its table."""
    where, known = "", list(SweepTable.model_fields)
    path = [part for part in problem["loc"] if part != "[key]"]
    table = path[0] if path else ""
    if table in ("run", "runtime") and len(path) > 1:
        where, path = f"[{table}] ", path[1:]
        known = list(RunTable.model_fields if table == "run" else Runtime.__dataclass_fields__)
    elif table == "overrides" and len(path) > 2:
        where, path, known = f"[overrides.{path[1]}] ", path[2:], list(RunTable.model_fields)
    elif table in ("variants", "datasets") and len(path) > 2:
        entry = raw[table][path[1]]
        where = f"[[{table}]] {entry.get('name') or entry.get('path') or f'number {path[1] + 1}'}: "
        path, known = path[2:], list((VariantTable if table == "variants" else DatasetTable).model_fields)
    name = ".".join(str(key) for key in path[:2] if not isinstance(key, int))
    if problem["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        text = unknown_name("key", name, known)
    elif problem["type"] == "missing":
        text = f"{name}: is required"
    else:
        text = f"{name}: {expected_and_got(problem)}" if name else expected_and_got(problem)
    return f"{where}{path[:2]}", where + text


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
    table: SweepTable
    datasets: tuple[Dataset, ...]
    runtime: Runtime
    cases: tuple[Case, ...]


def read_sweep(directory: Path, bar: Bar = no_bar, cache: Path | None = None) -> Sweep:
    """Read and check DIR/sweep.toml; a `ConfigError` lists the mistakes.

    Args:
        directory: The sweep's folder.
        bar: Shows that data are read.
        cache: Folder of decoded images in place of the one in the file.
    """
    folder = SweepFolder(Path(directory))
    if not folder.file.exists():
        raise UsageError(f"no {folder.file}; write one with: longshift sweep init {directory}")
    table = read_table(raw := read_toml(folder.file), folder)
    rows, runtime = dict(_rows(table)), Runtime(**asdict(table.runtime))
    runtime = replace(runtime, cache=cache or runtime.cache)
    datasets: list[Dataset] = []
    cases: list[Case] = []
    mistakes: list[str] = []
    for entry in table.datasets:
        where = f"[[datasets]] {entry.name or Path(entry.path).name}"
        try:
            opened = OpenDataset(entry.path, cache=runtime.cache, bar=bar)
            dataset = _dataset(entry, table, opened)
        except LongshiftError as error:
            mistakes.append(f"{where}: {error}")
            continue
        if dataset.name in [other.name for other in datasets]:
            mistakes.append(f"{where}: two datasets have the name {dataset.name!r}; give one another `name`")
        datasets.append(dataset)
        splits: set[tuple[object, ...]] = set()  # that the data have enough samples for
        for setting, target, (name, values) in product(table.settings, dataset.targets, rows.items()):
            place = {"benchmark": entry.benchmark, "setting": setting, "target": target}
            try:
                run = opened.resolve({**values, **place})
                cases.append(Case(dataset.name, name, run.config))
                split = (setting, target, run.config.ratio, run.config.shrink, run.config.validation)
                if split not in splits:
                    split_of(run, runtime.cache)
                    splits.add(split)
            except ConfigError as error:
                mistakes += [f"{name}: {text}" for text in error.mistakes]
            except LongshiftError as error:
                mistakes.append(f"{where}, setting {setting}: {error}")
    if mistakes:
        raise ConfigError(list(dict.fromkeys(mistakes)), str(folder.file))
    return Sweep(SweepFolder(folder.path, store_of(raw, folder.path)), table, tuple(datasets), runtime, tuple(cases))


def _rows(table: SweepTable) -> Iterator[tuple[str, dict[str, Any]]]:
    """What has a row in the tables, with its run keys: [run], the method's own on top, then the variant's."""
    run = table.run.given()
    for method in table.methods:
        own = table.overrides[method].given() if method in table.overrides else {}
        yield method, merged(common_values(run, method), own, {"method": method})
    for variant in table.variants:
        own = table.overrides[variant.method].given() if variant.method in table.overrides else {}
        values = merged(common_values(run, variant.method), own, variant.given(), {"method": variant.method})
        yield variant.name, values


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


def _dataset(entry: DatasetTable, table: SweepTable, opened: OpenDataset) -> Dataset:
    """Name and targets of a dataset."""
    known = opened.recognized_as(entry.benchmark)
    wanted = entry.targets or table.targets
    names = opened.manifest.domain_names if wanted == [ALL] else wanted
    targets = dict.fromkeys(find_target(opened.manifest, name, known) for name in names)
    published = entry.benchmark or (known if table.run.ratio is None else None)
    return Dataset(
        entry.name or published or opened.manifest.name, tuple(targets), opened.version, published is not None
    )

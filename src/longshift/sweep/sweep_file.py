"""The sweep file: what is compared, on what, how often and for how long.

Pydantic models check all that can be checked without the data and report all mistakes together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
)
from pydantic.dataclasses import dataclass as checked_dataclass
from pydantic_core import PydanticCustomError

from longshift.data import EMBEDDED, get_benchmark
from longshift.errors import ConfigError, LongshiftError, UsageError, unknown_name
from longshift.io import read_toml
from longshift.methods import all_methods, expected_and_got, get_method, methods_without_presets
from longshift.progress import Bar, no_bar
from longshift.settings import canonical_setting, find_target
from longshift.sweep.jobs import PER_TRIAL
from longshift.sweep.sweep_folder import SweepFolder, absolute, store_of
from longshift.training import OpenDataset, RunConfig, Runtime, parse_run_config

MOST_TRIALS = 1000
ALL = "all"
# What the expansion decides; a table of run keys may not.
EXPANDED = ("data", "benchmark", "setting", "target", "method", "split_seed", "hparam_seed", "train_seed")
STRICT = ConfigDict(extra="forbid", frozen=True)


def _mistake(text: str) -> PydanticCustomError:
    return PydanticCustomError("longshift", "{text}", {"text": text})


def _absolute(path: str, info: ValidationInfo) -> str:
    """Paths are meant from the file's folder."""
    return absolute(path, (info.context or {})["base"])


def _names(value: object) -> object:
    """A list of names; the word "all" stands for one."""
    if value != ALL and not isinstance(value, list):
        raise _mistake(f'expected "all" or a list of names, got {value!r}')
    return [ALL] if value == ALL else value


def _numbered(value: object) -> object:
    """Trials by their numbers, or how many there are, from trial 0 on."""
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_TRIALS:
        return tuple(range(value))
    if not isinstance(value, list):
        raise _mistake(
            f"expected a number of trials from 1 to {MOST_TRIALS}, or a list such as [3, 4, 5], got {value!r}"
        )
    return [item for place, item in enumerate(value) if item not in value[:place]]


def _path(value: str, info: ValidationInfo) -> str:
    return value if value in EMBEDDED else _absolute(value, info)


def _method(value: str) -> str:
    """The registered name of a method."""
    if value.casefold() == ALL:
        return ALL
    try:
        return get_method(value).info.name
    except LongshiftError as error:
        raise _mistake(str(error)) from error


def _setting(value: str, info: ValidationInfo) -> str:
    if Path(value).suffix.lower() in (".json", ".csv"):
        return _absolute(value, info)
    try:
        return canonical_setting(value)
    except LongshiftError as error:
        raise _mistake(str(error)) from error


def _row_name(value: object) -> object:
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise _mistake(f"expected a word or a few, got {value!r}")
    if "+" in value:
        raise _mistake('expected no "+", which marks the rows of averaged weights ("ndcl+ema")')
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
            raise _mistake(str(error)) from error


class RunTable(RunConfig):
    """[run] and [overrides.METHOD]: any key of a run that the sweep itself does not decide."""

    own_keys: ClassVar[tuple[str, ...]] = ()

    target: str = ""
    weights: FilePath | None = None

    @field_validator(*EXPANDED, mode="before")
    @classmethod
    def _not_expanded(cls, value: object, info: ValidationInfo) -> object:
        if info.field_name not in cls.own_keys:
            raise _mistake("follows from the sweep's own keys and cannot be set here")
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
        base, path = (info.context or {})["base"], Path(_absolute(str(value), info))
        if not path.resolve().is_relative_to(base.resolve()):  # a stranger's sweep could fill any folder
            raise _mistake(f"expected a folder inside {base}, got {value}; name others by --cache")
        return path

    @field_validator("device", mode="before")
    @classmethod
    def _from_launcher(cls, value: object) -> object:
        raise _mistake("is an option of `longshift sweep run` and cannot be set here")


class SweepTable(BaseModel):
    """The whole file."""

    model_config = STRICT

    datasets: list[DatasetTable] = Field(min_length=1)
    settings: list[Annotated[str, AfterValidator(_setting)]] = Field(min_length=1)
    targets: Names = Field(default_factory=lambda: [ALL])
    methods: Annotated[list[MethodName], BeforeValidator(_names)] = Field(default_factory=lambda: [ALL])
    variants: list[VariantTable] = Field(default_factory=list)
    trials: Annotated[tuple[TrialNumber, ...], BeforeValidator(_numbered)] = Field((0, 1, 2), min_length=1)
    draws: int = Field(10, ge=1, le=PER_TRIAL)
    store: FilePath = Field(".", validate_default=True)
    run: RunTable = Field(default_factory=RunTable)
    overrides: dict[MethodName, RunTable] = Field(default_factory=dict)
    runtime: RuntimeTable = Field(default_factory=RuntimeTable)


def read_table(raw: Mapping[str, Any], folder: SweepFolder) -> SweepTable:
    """A sweep file without mistakes in it; what the data do not permit shows later."""
    try:
        return SweepTable.model_validate(raw, context={"base": folder.path})
    except ValidationError as error:
        mistakes: dict[tuple[str, str], str] = {}
        for problem in error.errors():
            place, text = _told(problem, raw)
            mistakes.setdefault(place, text)  # each branch of a union has an error of its own: one is enough
        raise ConfigError(list(mistakes.values()), str(folder.file)) from error


def _told(problem: Mapping[str, Any], raw: Mapping[str, Any]) -> tuple[tuple[str, str], str]:
    """The place of a mistake, and the mistake in words."""
    where, keys, known = _place([part for part in problem["loc"] if part != "[key]"], raw)
    name = ".".join(str(key) for key in keys[:2] if not isinstance(key, int))
    if problem["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        text = unknown_name("key", name, known)
    elif problem["type"] == "missing":
        text = f"{name}: is required"
    else:
        words = expected_and_got(problem)
        text = f"{name}: {words}" if name else words
    return (where, ".".join(map(str, keys[:2]))), where + text


def _place(path: Sequence[Any], raw: Mapping[str, Any]) -> tuple[str, Sequence[Any], Iterable[str]]:
    """The table that a path leads into, in words, the rest of the path, and the keys that the table may have."""
    table, *rest = path
    if table in ("run", "runtime") and rest:
        return f"[{table}] ", rest, RunTable.model_fields if table == "run" else Runtime.__dataclass_fields__
    if table == "overrides" and len(rest) > 1:
        return f"[overrides.{rest[0]}] ", rest[1:], RunTable.model_fields
    if table in ("variants", "datasets") and rest:
        entry = raw[table][rest[0]]
        name = entry.get("name" if table == "variants" else "path") if isinstance(entry, dict) else None
        title = name if isinstance(name, str) and name.strip() else f"number {rest[0] + 1}"
        known = VariantTable.model_fields if table == "variants" else DatasetTable.model_fields
        return f"[[{table}]] {title}: ", rest[1:], known
    return "", path, SweepTable.model_fields


@dataclass(frozen=True)
class ComparedRow:
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
    mistakes, methods = _name_mistakes(table), tuple(_methods(table))
    if not methods and not table.variants:
        mistakes.append("methods: expected a method or [[variants]] to compare, got none")
    rows = _good_rows(list(_rows(table, methods)), mistakes)
    settings, runtime = tuple(dict.fromkeys(table.settings)), Runtime(**asdict(table.runtime))
    runtime = replace(runtime, cache=cache or runtime.cache)
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
        SweepFolder(folder.path, store_of(raw, folder.path)), tuple(datasets), settings, methods,
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


def _rows(table: SweepTable, methods: Iterable[str]) -> Iterator[ComparedRow]:
    """What is compared, with its run keys: [run], the method's own on top, then the variant's."""
    run = table.run.given()
    own = {get_method(name).info.name: keys.given() for name, keys in table.overrides.items()}
    for method in methods:
        name = get_method(method).info.name
        values = merged(common_values(run, method), own.get(name, {}), {"method": method})
        yield ComparedRow(name, values, f"[overrides.{name}]")
    for variant in table.variants:
        above = own.get(get_method(variant.method).info.name, {})
        values = merged(common_values(run, variant.method), above, variant.given(), {"method": variant.method})
        yield ComparedRow(variant.name, values, f"[[variants]] {variant.name}:")


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


def _good_rows(rows: list[ComparedRow], mistakes: list[str]) -> list[ComparedRow]:
    """The rows whose keys go together; a mistake in all of them is one of [run]."""
    found: dict[str, list[ComparedRow]] = {}
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

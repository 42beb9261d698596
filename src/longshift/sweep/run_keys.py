"""The keys of a run in a sweep file: [run] for all jobs, [overrides.METHOD] for one method, both for a variant."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from longshift.errors import ConfigError, LongshiftError
from longshift.methods import get_method, is_file_spec
from longshift.sweep.sweep_folder import absolute
from longshift.training import parse_run_config

# What the expansion decides; a [run] table may not.
EXPANDED = ("data", "benchmark", "setting", "target", "method", "split_seed", "hparam_seed", "train_seed")


def method_name(name: str, base: Path) -> str:
    """The registered name; a method in a file of the user's keeps its path, which is how a worker finds it."""
    if is_file_spec(name):
        path, _, attribute = name.rpartition(":")
        name = f"{absolute(path, base)}:{attribute}"
        get_method(name)
        return name
    return get_method(name).info.name


def each(names: Iterable[str], check: Callable[[str], str], where: str, mistakes: list[str]) -> list[str]:
    """What `check` makes of each name; what it refuses is a mistake at `where`."""
    found: list[str] = []
    for name in names:
        try:
            found.append(check(name))
        except LongshiftError as error:
            mistakes.append(f"{where}: {error}")
    return found


def table(value: object) -> dict[str, Any]:
    """A table of the file; what is none is empty, and reported elsewhere."""
    return dict(value) if isinstance(value, Mapping) else {}


def merged(*tables: Mapping[str, Any]) -> dict[str, Any]:
    """Run keys with later tables on top of earlier ones, hyper-parameters one by one."""
    hparams: dict[str, Any] = {}
    values: dict[str, Any] = {}
    for one in tables:
        hparams |= table(one.get("hparams"))
        values |= one
    return {**values, "hparams": hparams}


def shared(run: Mapping[str, Any], method: str) -> dict[str, Any]:
    """[run] as it is for one method: without those of the common hyper-parameters that have no effect on it."""
    unused = get_method(method).Config.not_used()
    return {**run, "hparams": {name: v for name, v in table(run.get("hparams")).items() if name not in unused}}


def overrides(value: object, base: Path, mistakes: list[str]) -> dict[str, dict[str, Any]]:
    """The [overrides] tables by the proper name of their method."""
    found: dict[str, dict[str, Any]] = {}
    for name, own in table(value).items():
        try:
            proper = get_method(method_name(name, base)).info.name
        except LongshiftError as error:
            mistakes.append(f"overrides: {error}")
            continue
        found[proper] = table(own)
    return found


def check_methods(
    run: Mapping[str, Any], methods: Iterable[str], own: Mapping[str, Mapping[str, Any]], mistakes: list[str]
) -> None:
    """Complain about [run] and about [overrides] of the methods that take part."""
    common = good_keys("[run]", run, mistakes)
    for method in methods:
        name = get_method(method).info.name
        where = f"[overrides.{name}]"
        mine = good_keys(where, own.get(name, {}), mistakes)
        check_values(where, merged(shared(common, method), mine), method, mistakes)


def check_values(where: str, values: Mapping[str, Any], method: str, mistakes: list[str]) -> None:
    """Complain about what only shows when the keys come together, such as hyper-parameters of a method."""
    try:
        parse_run_config({**values, "method": method, "target": "-"})
    except ConfigError as error:
        mistakes.extend(f"{where} {m}" for m in error.mistakes)


def good_keys(where: str, given: Mapping[str, Any], mistakes: list[str]) -> dict[str, Any]:
    """Complain about the run keys of one table; the good ones come back, hyper-parameters unseen."""
    good: dict[str, Any] = {}
    for key, value in given.items():
        if key == "hparams" and isinstance(value, Mapping):
            good[key] = dict(value)
            continue
        if key in EXPANDED:
            mistakes.append(f"{where} {key}: follows from the sweep's own keys and cannot be set here")
            continue
        try:
            parse_run_config({key: value, "target": "-", "method": "erm"})
        except ConfigError as error:
            mistakes.extend(f"{where} {m}" for m in error.mistakes)
        else:
            good[key] = value
    return good


def placed(values: Mapping[str, Any], base: Path) -> dict[str, Any]:
    """The keys with a file of weights meant from the sweep file's folder."""
    if isinstance(values.get("weights"), str):
        return {**values, "weights": absolute(values["weights"], base)}
    return dict(values)

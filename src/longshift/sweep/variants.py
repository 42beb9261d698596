"""[[variants]] of a sweep file: one method more than once, each time with other values, each with a row of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longshift.errors import LongshiftError
from longshift.methods import all_methods, get_method
from longshift.sweep import run_keys


@dataclass(frozen=True)
class Variant:
    """One more entry among the methods compared. `values` are run keys on top of its method's."""

    name: str
    method: str
    values: Mapping[str, Any]


def read_variants(
    given: object,
    base: Path,
    run: Mapping[str, Any],
    methods: Iterable[str],
    own: Mapping[str, Mapping[str, Any]],
    mistakes: list[str],
) -> tuple[Variant, ...]:
    """The variants that are right; complains about the others."""
    known = [cls.info for cls in all_methods().values()] + [get_method(method).info for method in methods]
    taken = {word.casefold(): "a method" for info in known for word in (info.name, info.title)}
    found: list[Variant] = []
    silent: list[str] = []  # [run] is checked, and complained about, with the methods
    common = run_keys.good_keys("[run]", run, silent)
    for number, item in enumerate(given if isinstance(given, list) else ()):
        if not isinstance(item, Mapping):
            continue  # reported with the structure
        keys = dict(item)
        name, method = keys.pop("name", None), keys.pop("method", None)
        where = f"[[variants]] {name if isinstance(name, str) and name.strip() else f'number {number + 1}'}:"
        before = len(mistakes)
        mistakes += [f"{where} {problem}" for problem in _name_problems(name, taken)]
        if isinstance(name, str):
            taken[name.strip().casefold()] = "another variant"
        good = run_keys.good_keys(where, keys, mistakes)
        try:
            if not isinstance(method, str):
                raise LongshiftError("method: is required, the name of a method")
            proper = run_keys.method_name(method, base)
        except LongshiftError as error:
            mistakes.append(f"{where} {error}")
            continue
        above = [run_keys.shared(common, proper), own.get(get_method(proper).info.name, {})]
        run_keys.check_values(where, run_keys.merged(*above, good), proper, mistakes)
        if len(mistakes) == before:
            found.append(Variant(str(name).strip(), proper, run_keys.placed(good, base)))
    return tuple(found)


def _name_problems(name: object, taken: Mapping[str, str]) -> list[str]:
    if name is None:
        return ["name: is required; tables call its row so"]
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        return [f"name: expected a word or a few, got {name!r}"]
    if "+" in name:
        return ['name: expected no "+", which marks the rows of averaged weights ("ndcl+ema")']
    owner = taken.get(name.strip().casefold())
    return [f"name: {owner} is called so already; choose another"] if owner else []

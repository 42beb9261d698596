"""What a method states about itself: name, title, family, paper, idea. Read from source files, without PyTorch."""

from __future__ import annotations

import ast
import csv
import functools
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from longshift.errors import UsageError, unknown_name
from longshift.registry import load_plugins

COMMON = "MethodConfig"  # the hyper-parameters that all methods have

FAMILIES = {
    "dg": "domain generalization",
    "imbalance": "class imbalance",
    "idg": "imbalanced domain generalization",
}


@dataclass(frozen=True)
class MethodInfo:
    """What lists and tables show of a method.

    Attributes:
        name: What a user types: "ndcl".
        title: What a table shows: "NDCL".
        family: "dg", "imbalance" or "idg".
        paper: Reference.
        idea: One line.
        row: Row in the tables of the paper; 0 if it is not in the paper.
        preset_of: The method that this one is, with other defaults.
        formula: What it minimizes, in LaTeX; docs/reference/methods.md explains the symbols.
        use: When to use it.
        card: What it does, in plain words for a model card; the idea if there are none.

    Example:
        >>> from longshift.methods import get_method
        >>> info = get_method("ndcl").info
        >>> info.title, info.family, info.paper
        ('NDCL', 'idg', 'arXiv:2601.21999')
    """

    name: str
    title: str
    family: str
    paper: str
    idea: str
    row: int = 0
    preset_of: str = ""
    formula: str = ""
    use: str = ""
    card: str = ""


def in_order(infos: Iterable[MethodInfo]) -> list[MethodInfo]:
    """By family, and by name in a family."""
    order = list(FAMILIES)
    return sorted(infos, key=lambda info: (order.index(info.family), info.name))


def method_infos() -> list[MethodInfo]:
    """Return the facts of all methods without loading PyTorch: those of longshift and those of plugins.

    Returns:
        A `MethodInfo` per method, by family and name.

    Example:
        >>> [info.title for info in method_infos()][:2]
        ['CORAL', 'DANN']
    """
    load_plugins()
    infos = {info.name: info for info in own_method_infos()}
    if "longshift.methods.registry" in sys.modules:
        from longshift.methods.registry import METHODS

        infos |= {name: cls.info for name, cls in METHODS.items()}
    return in_order(infos.values())


@functools.cache
def own_method_infos() -> tuple[MethodInfo, ...]:
    """The methods of this package."""
    modules = Path(__file__).parent.glob("*.py")
    return tuple(in_order(info for path in modules for info in read_infos(path.read_text(encoding="utf-8"))))


def read_infos(source: str) -> Iterator[MethodInfo]:
    """The `@register(...)` lines of a file of methods, whose arguments are literals."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef):
            yield from _infos_of(node)


def _infos_of(node: ast.ClassDef) -> Iterator[MethodInfo]:
    for line in node.decorator_list:
        if isinstance(line, ast.Call) and isinstance(line.func, ast.Name) and line.func.id == "register":
            values: dict[str, Any] = {str(word.arg): ast.literal_eval(word.value) for word in line.keywords}
            yield MethodInfo(ast.literal_eval(line.args[0]), **values)


def check_names(method: str, hparams: Iterable[str] = ()) -> None:
    """Raise `UsageError` for a method or a hyper-parameter that does not exist, without loading PyTorch.

    Hyper-parameters of methods of plugins are not checked here: their source files are not read.
    """
    infos = {info.name: info.title for info in method_infos()}
    asked = method.casefold()
    found = next((name for name, title in infos.items() if asked in (name.casefold(), title.casefold())), None)
    if found is None:
        raise UsageError(f"{unknown_name('method', method, infos)}; `longshift methods` lists them all")
    if found in own_hyper_parameters():
        known = own_hyper_parameters()[found]
        for name in hparams:
            if name not in known:
                unknown = unknown_name("hyper-parameter", name, known)
                raise UsageError(f"--set: {unknown} (`longshift methods {found}` lists them all)")


@functools.cache
def own_hyper_parameters() -> dict[str, frozenset[str]]:
    """The names of the hyper-parameters of each method of this package, read from its source."""
    sources = [path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("*.py")]
    classes = {node.name: node for text in sources for node in ast.parse(text).body if isinstance(node, ast.ClassDef)}
    found = {}
    for node in classes.values():
        for info in _infos_of(node):
            found[info.name] = frozenset(_fields(_config_name(node, classes), classes))
    return found


def _config_name(node: ast.ClassDef, classes: Mapping[str, ast.ClassDef]) -> str:
    """The class of a method's hyper-parameters: `Config = ...` in it or in a base class."""
    for line in node.body:
        if isinstance(line, ast.Assign) and isinstance(line.value, ast.Name) and _names(line.targets) == ["Config"]:
            return line.value.id
    return next((_config_name(classes[base], classes) for base in _names(node.bases) if base in classes), COMMON)


def _fields(name: str, classes: Mapping[str, ast.ClassDef]) -> Iterator[str]:
    """The names of all fields of a class and its base classes."""
    if name in classes:
        lines = [line for line in classes[name].body if isinstance(line, ast.AnnAssign)]
        yield from _names(line.target for line in lines)
        for base in _names(classes[name].bases):
            yield from _fields(base, classes)


def _names(nodes: Iterable[ast.AST]) -> list[str]:
    return [node.id for node in nodes if isinstance(node, ast.Name)]


def method_summary(info: MethodInfo) -> dict[str, Any]:
    """One method in a line: name, title, family, paper, idea, step cost relative to ERM by hardware."""
    return {
        "name": info.name,
        "title": info.title,
        "family": info.family,
        "paper": info.paper,
        "idea": info.idea,
        "preset_of": info.preset_of,
        "step_cost": step_costs().get(info.name, {}),
    }


def step_costs(text: str | None = None) -> dict[str, dict[str, float]]:
    """{method: {hardware: step time relative to ERM}}, from `text` or cost.csv, which benchmarks/methods.py writes."""
    if text is None:
        text = (files("longshift.methods") / "cost.csv").read_text(encoding="utf-8")
    costs: dict[str, dict[str, float]] = {}
    for row in csv.DictReader(text.splitlines()):
        costs.setdefault(row["method"], {})[row["hardware"]] = float(row["ratio"])
    return costs


def cost_cell(costs: Mapping[str, float], hardware: Sequence[str] | None = None) -> str:
    """Relative step costs in a cell, one for each hardware (by default all in cost.csv), "-" where there is none."""
    if not costs:
        return "-"
    return " / ".join(f"{costs[name]:.2f}" if name in costs else "-" for name in hardware or _hardware())


def _hardware() -> list[str]:
    return list(dict.fromkeys(name for costs in step_costs().values() for name in costs))


def cost_note() -> str:
    """What the numbers in a cost cell mean."""
    places = " / ".join(_hardware())
    where = f"on {places}, without style mixing (benchmarks/methods.py)"
    return f"Step cost: time per step as a multiple of that of ERM, {where}."

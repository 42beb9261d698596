"""What lists, tables and pages show of a method: its facts, its hyper-parameters and its cost. Without PyTorch."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from longshift.methods.config import HyperParameter, Value

if TYPE_CHECKING:
    from longshift.methods.base import Method

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


def step_costs() -> dict[str, dict[str, float]]:
    """{method: {hardware: step time relative to ERM}} from cost.csv, which benchmarks/methods.py writes."""
    text = (files("longshift.methods") / "cost.csv").read_text(encoding="utf-8")
    costs: dict[str, dict[str, float]] = {}
    for row in csv.DictReader(text.splitlines()):
        costs.setdefault(row["method"], {})[row["hardware"]] = float(row["ratio"])
    return costs


def cost_cell(costs: Mapping[str, float]) -> str:
    """Relative step costs in a cell, one for each hardware in cost.csv, "-" where there is none."""
    if not costs:
        return "-"
    return " / ".join(f"{costs[name]:.2f}" if name in costs else "-" for name in _hardware())


def _hardware() -> list[str]:
    return list(dict.fromkeys(name for costs in step_costs().values() for name in costs))


def cost_note() -> str:
    """What the numbers in a cost cell mean."""
    places = " / ".join(_hardware())
    where = f"on {places}, without style mixing (benchmarks/methods.py)"
    return f"Step cost: time per step as a multiple of that of ERM, {where}."


def method_details(cls: type[Method]) -> dict[str, Any]:
    """Return the summary, docstring, hyper-parameters and repairs of a method."""
    from longshift.methods.registry import get_method  # which imports PyTorch

    used = {name: info for name, info in cls.Config.hyper_parameters().items() if not info.instead}
    base = get_method(cls.info.preset_of) if cls.info.preset_of else cls
    tables = {"": (cls.Config, base.Config), "style.": (cls.Style, base.Style)}
    return method_summary(cls.info) | {
        "description": " ".join((cls.__doc__ or "").split()),
        "formula": cls.info.formula,
        "use": cls.info.use,
        "hyper_parameters": {name: hyper_parameter(info) for name, info in used.items()},
        "differs": [
            f"{table}{name}={format_value(info.default)}"
            for table, (own, other) in tables.items()
            for name, info in own.hyper_parameters().items()
            if info.default != other.hyper_parameters()[name].default
        ],
        "style": {name: hyper_parameter(info) for name, info in cls.Style.hyper_parameters().items()},
        "not_used": cls.Config.not_used(),
        "repairs": list(cls.repairs),
    }


def hyper_parameter(info: HyperParameter) -> dict[str, Any]:
    """Return default, range, limits and meaning as plain values."""
    return {
        "default": info.default,
        "range": info.space.describe(),
        "limits": limits(info),
        "meaning": info.meaning,
        "variants": {key: {"default": v, "range": space.describe()} for key, (v, space) in info.variants.items()},
    }


def limits(info: HyperParameter) -> str:
    """Describe the accepted values in one phrase."""
    if isinstance(info.default, bool):
        return "true or false"
    if info.options:
        return "one of " + ", ".join(map(str, info.options))
    ends = ((">=", info.at_least), ("<=", info.at_most))
    return ", ".join(f"{sign} {end:g}" for sign, end in ends if end is not None)


def format_value(value: Value) -> str:
    """Format a value as a user would type it."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)

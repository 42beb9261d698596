"""Step time of each method relative to ERM, as measured by benchmarks/methods.py and shipped in cost.csv."""

from __future__ import annotations

import csv
from importlib.resources import files


def step_costs(text: str | None = None) -> dict[str, dict[str, float]]:
    """{method: {hardware: ratio}} from the shipped table (or `text`); empty where nothing was measured."""
    if text is None:
        source = files("longshift.methods") / "cost.csv"
        text = source.read_text(encoding="utf-8") if source.is_file() else ""
    costs: dict[str, dict[str, float]] = {}
    for row in csv.DictReader(text.splitlines()):
        costs.setdefault(row["method"], {})[row["hardware"]] = float(row["ratio"])
    return costs

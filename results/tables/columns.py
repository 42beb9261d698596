"""docs/reference/run-table.md: the schema of the table of runs."""

from __future__ import annotations

from longshift.sweep import run_columns
from results.numbers import markdown

SETS, OWN = ("validation_", "test_", "last_", "oracle_target_"), ("validation_balanced", "validation_curve")


def table() -> str:
    """Measures of the three sets, and those at other steps, are one row."""
    rows = []
    for column in run_columns():
        name, meaning = column.name, column.meaning
        if name.startswith(SETS) and name not in OWN:
            continue
        if name.startswith("target_"):
            name, meaning = name.replace("target_", "SET_"), meaning.removesuffix(", target")
        rows.append([f"`{name}`", column.type, meaning, "yes" if column.machine else ""])
    rows.append(["`last_SET_...`", "number", "the measures at the last step", ""])
    rows.append(["`oracle_target_...`", "number", "the measures of the target at the oracle step", ""])
    return markdown(["column", "type", "meaning", "machine"], rows)

"""The paper's numbers beside the measured ones, where it has numbers for the dataset."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from longshift.paper.published_tables import overall_results, paper_table
from longshift.report import Table, compare, published


def paper_rows(name: str, benchmark: str | None) -> pd.DataFrame:
    """The paper's numbers for a recipe on a benchmark; empty where it has none."""
    if not name or benchmark is None:
        return pd.DataFrame()
    found = paper_table(name)
    return found[found["dataset"] == benchmark].reset_index(drop=True) if "dataset" in found else pd.DataFrame()


def averages_beside(table: Table, benchmark: str | None) -> list[Table]:
    """Measured, published and difference for a table of averages; nothing for other data than the paper's."""
    if benchmark is None:
        return []
    known = overall_results()
    known = known[known["dataset"] == benchmark]
    if known.empty:
        return []
    tables, _ = compare([table], published("the paper", known, known.iloc[:0].assign(target="")))
    endings = {"agreement": "agreement"}
    named = [replace(made, name=f"{table.name}-{endings.get(made.kind, 'beside-paper')}") for made in tables]
    return sorted(named, key=lambda made: made.kind == "agreement")

"""The numbers the paper prints (arXiv:2601.21999), as data: one CSV per table, one row per number.

Methods carry their registry names; settings and datasets the names used everywhere in this package; targets the
paper's letters (PACS: A art_painting, C cartoon, P photo, S sketch; VLCS: C caltech, L labelme, S sun,
V pascal_voc; OfficeHome: A art, C clipart, P product, R real_world). Accuracies are in percent. `tables/README.md`
lists the tables.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import resources

import pandas as pd

from longshift.errors import UsageError, unknown_name
from longshift.report import Table, compare, published

_FOLDER = resources.files(__package__) / "tables"


def paper_table(name: str) -> pd.DataFrame:
    """The numbers of one table; `mean` and `stderr` where the paper gives them (NaN: no standard error printed).

    `place` is the paper's own mark: 1 bold, 2 underlined, 3 dashed, missing otherwise.
    """
    known = {file.name.removesuffix(".csv") for file in _FOLDER.iterdir() if file.name.endswith(".csv")}
    if name not in known:
        raise UsageError(unknown_name("paper table", name, known))
    with (_FOLDER / f"{name}.csv").open(encoding="utf-8") as file:
        return pd.read_csv(file, dtype={"place": "Int64"})


def overall_results() -> pd.DataFrame:
    """Tables 1 to 3 in one frame: 24 methods x 8 (dataset, setting) pairs x average, many, medium, few."""
    names = ("ginidg_average", "totalheavytail_average", "duality_average")
    return pd.concat([paper_table(name) for name in names], ignore_index=True)


def paper_rows(name: str, benchmark: str | None) -> pd.DataFrame:
    """The paper's numbers for a recipe on a benchmark; empty where it has none."""
    if not name or benchmark is None:
        return pd.DataFrame()
    found = paper_table(name)
    return found[found["dataset"] == benchmark].reset_index(drop=True) if "dataset" in found else pd.DataFrame()


def averages_beside(table: Table, benchmark: str | None) -> list[Table]:
    """Measured, published and difference for a table of averages; nothing for other data than the paper's."""
    known = overall_results()
    known = known[known["dataset"] == benchmark]
    if known.empty:
        return []
    tables, _ = compare([table], published("the paper", known, known.iloc[:0].assign(target="")))
    endings = {"agreement": "agreement", "paper": "beside-paper"}
    named = [replace(made, name=f"{table.name}-{endings[made.kind]}") for made in tables]
    return sorted(named, key=lambda made: made.kind == "agreement")

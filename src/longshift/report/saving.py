"""All tables of a report as files in a folder."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

from longshift.io import write_text
from longshift.report.latex_format import LATEX_PACKAGES, latex_document, latex_table
from longshift.report.markdown_format import markdown_table
from longshift.report.missing_runs import Missing
from longshift.report.table import Table
from longshift.results import write_runs
from longshift.text import csv_cell

CSV_COLUMNS = (
    "table", "dataset", "setting", "target", "measure", "column", "method", "title", "family", "mean", "stderr",
    "place", "trials", "runs", "selection", "note",
)  # fmt: skip


def save_tables(
    tables: Sequence[Table],
    runs: pd.DataFrame,
    missing: Missing,
    folder: Path,
    lines: Sequence[str] = (),
    raw: bool = False,
) -> list[Path]:
    """tables.md, tables.tex (a document), latex/NAME.tex (to include), KIND.csv, runs.csv, missing.csv.

    `lines` stand at the end of the Markdown. `raw`: without quotes in front of what a spreadsheet would run.
    """
    pages = [*map(markdown_table, tables), *(f"{line}\n" for line in lines)]
    texts = {"tables.md": "\n".join(pages), "tables.tex": latex_document(tables)}
    texts |= {f"latex/{table.name}.tex": LATEX_PACKAGES + latex_table(table) for table in tables}
    for kind in dict.fromkeys(table.kind for table in tables):
        texts[f"{kind}.csv"] = csv_tables((table for table in tables if table.kind == kind), raw)
    texts["missing.csv"] = missing.frame.map(lambda value: csv_cell(value, raw)).to_csv(
        index=False, lineterminator="\n"
    )
    for name, text in texts.items():
        write_text(folder / name, text)
    write_runs(runs[runs["status"].isin(["done", "diverged"])], folder / "runs.csv", raw)
    return [folder / name for name in (*texts, "runs.csv")]


def as_json(table: Table) -> dict[str, object]:
    """A table for machines: full precision, names next to numbers."""
    cells = [
        {**column.key, "method": row.name, "mean": cell.value}
        | {name: getattr(cell, name) for name in ("stderr", "place", "trials", "runs", "note")}
        for row in table.rows
        for column, cell in zip(table.columns, row.cells, strict=True)
    ]
    head = {"name": table.name, "kind": table.kind, "title": table.title, "selection": table.rule}
    return {**head, "notes": list(table.notes), "cells": cells}


def csv_tables(tables: Iterable[Table], raw: bool = False) -> str:
    """Accuracies in percent, unrounded; the same runs give the same bytes."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for table in tables:
        for row in table.rows:
            for column, cell in zip(table.columns, row.cells, strict=True):
                names = [column.key.get(name, "") for name in ("dataset", "setting", "target", "measure")]
                label = " ".join(filter(None, (column.group, column.title)))
                numbers = [_number(cell.value), _number(cell.stderr), cell.place or "", cell.trials or "", cell.runs]
                texts = [table.kind, *names, label, row.name, row.title, row.family]
                cells = [csv_cell(text, raw) for text in texts]
                writer.writerow([*cells, *numbers, table.rule, csv_cell(cell.note, raw)])
    return out.getvalue()


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.10g}"

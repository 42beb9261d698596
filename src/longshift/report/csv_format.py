"""Tables as CSV: one line a number, with everything that says where it comes from."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

from longshift.report.table import Table

COLUMNS = (
    "table", "dataset", "setting", "target", "measure", "column", "method", "title", "family", "mean", "stderr",
    "place", "trials", "runs", "selection", "note",
)  # fmt: skip


def csv_tables(tables: Iterable[Table]) -> str:
    """Accuracies in percent, unrounded; the same runs give the same bytes."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for table in tables:
        for row in table.rows:
            for column, cell in zip(table.columns, row.cells, strict=True):
                names = [column.key.get(name, "") for name in ("dataset", "setting", "target", "measure")]
                label = " ".join(filter(None, (column.group, column.title)))
                numbers = [_number(cell.value), _number(cell.stderr), cell.place or "", cell.trials or "", cell.runs]
                writer.writerow(
                    [table.kind, *names, label, row.name, row.title, row.family, *numbers, table.rule, cell.note]
                )
    return out.getvalue()


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.10g}"

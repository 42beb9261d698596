"""Tables of recipes as files."""

from __future__ import annotations

from pathlib import Path

import pytest

from longshift.paper.output_files import write_output
from longshift.report import Cell, Column, Row, Table


@pytest.mark.parametrize(("raw", "name"), [(False, "'=1+1"), (True, "=1+1")])
def test_cells_that_a_spreadsheet_would_run_are_quoted_unless_raw(raw: bool, name: str, tmp_path: Path) -> None:
    table = Table("t", "average", "T", (Column("a"),), (Row("=1+1", "=1+1", "", (Cell(1.0),)),))
    write_output(table, tmp_path, raw)
    header, row = (line.split(",") for line in (tmp_path / "t.csv").read_text(encoding="utf-8").splitlines())
    assert row[header.index("method")] == name

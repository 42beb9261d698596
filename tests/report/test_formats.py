"""The same table as Markdown, LaTeX, CSV and on the terminal."""

from __future__ import annotations

import csv
import io
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from rich.console import Console

from longshift.report.formats import (
    csv_tables,
    latex_document,
    latex_table,
    markdown_table,
    print_report,
    save_tables,
)
from longshift.report.kinds import build_tables
from longshift.report.runs import find_missing
from longshift.report.table import Cell, Column, Table, TableRow
from tests.report.fake import frame

NASTY = r"a_b & 50% $x$ {y} #1 \z ~t ^u <script>|`q` 'r' ÀçčÆøß ąđ東"


def small() -> Table:
    columns = (Column("Average", "PACS", {"dataset": "PACS"}), Column("Few", "PACS"))
    numbers = [
        (Cell(85.66, 0.44, 1), Cell(50.0, 1.0, 2)),
        (Cell(70.0, None, 2), Cell(40.0, 0.2, 3, "2 of 3 trials")),
        (Cell(60.0, 0.1, 3), Cell(None, note="no complete trial")),
    ]
    names = (("ndcl", "NDCL", "ndcl"), ("erm", "ERM", "dg"), ("x", NASTY, "dg"))
    rows = tuple(TableRow(*name, cells) for name, cells in zip(names, numbers, strict=True))
    return Table("t", "average", "A title", columns, rows, "How.", "validation", ("1 of 6 runs has no result.",))


def test_markdown_marks_places_and_gaps() -> None:
    text = markdown_table(small())
    lines = text.splitlines()
    assert "| Method | Average | Few |" in lines
    assert "| NDCL | **85.7 ± 0.4** | <u>50.0 ± 1.0</u> |" in lines
    dashed = '*<u style="text-decoration-style:dashed">40.0 ± 0.2</u>*<sup>a</sup>'
    assert f"| ERM | <u>70.0</u> | {dashed} |" in lines
    assert all(len(re.findall(r"(?<!\\)\|", line)) == 4 for line in lines if line.startswith("|"))
    assert "<script>" not in text


def test_latex_uses_the_papers_marks_and_escapes_names() -> None:
    text = latex_table(small())
    assert r"NDCL & \textbf{85.7 $\pm$ 0.4} & \underline{50.0 $\pm$ 1.0} \\" in text
    assert r"\dashuline{40.0 $\pm$ 0.2}$^{\mathrm{a}}$" in text
    assert r"--$^{\mathrm{b}}$" in text
    assert r"\multicolumn{2}{c}{PACS}" in text
    assert r"a\_b \& 50\% \$x\$ \{y\} \#1 \textbackslash{}z" in text
    assert text.count(r"\midrule") == 2  # one above each family


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no pdflatex on this machine")
def test_latex_compiles(tmp_path: Path) -> None:
    tables = [small(), *build_tables(frame(datasets=("PACS", "VLCS", "OfficeHome")))]
    (tmp_path / "t.tex").write_text(latex_document(tables), encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    assert (tmp_path / "t.pdf").stat().st_size > 1000


def test_csv_has_a_line_a_number_and_reads_back() -> None:
    tables = build_tables(frame(), ["average", "worst"])
    found = list(csv.DictReader(io.StringIO(csv_tables(tables))))
    assert len(found) == 4 * 4 + 4 * 2
    first = next(r for r in found if r["method"] == "ndcl" and r["measure"] == "target_few")
    cell = tables[0].rows[3].cells[3]
    assert float(first["mean"]) == pytest.approx(cell.value, rel=1e-9)
    assert float(first["stderr"]) == pytest.approx(cell.stderr, rel=1e-9)
    names = ("dataset", "setting", "selection", "trials", "runs")
    assert [first[name] for name in names] == ["digits", "Duality", "validation", "3", "12"]  # 2 targets, 2 draws
    assert csv_tables([small()]).count("\n") == 1 + 6


@pytest.mark.parametrize("width", [60, 200])
def test_the_terminal_shows_every_number_at_any_width(width: int) -> None:
    table = build_tables(frame(datasets=("PACS", "VLCS", "OfficeHome")), ["average"])[0]
    console = Console(width=width, file=io.StringIO(), force_terminal=False)
    print_report(table, console)
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert max(map(len, text.splitlines())) <= width
    for row in table.rows:
        for cell in row.cells:
            assert cell.text in text
    assert (text.count("NDCL") > 1) == (width == 60)  # a table that is too wide is cut


def test_files_are_complete(tmp_path: Path) -> None:
    runs = frame()
    tables = build_tables(runs)
    written = save_tables(tables, runs, find_missing(runs), tmp_path / "new" / "out")
    assert {p.relative_to(tmp_path / "new" / "out").as_posix() for p in written} == {
        "tables.md", "tables.tex", "average.csv", "target.csv", "worst.csv", "cost.csv", "missing.csv", "runs.csv",
        "latex/average-duality.tex", "latex/target-digits-duality.tex", "latex/worst-duality.tex", "latex/cost.tex",
    }  # fmt: skip
    (table,) = (t for t in tables if t.kind == "cost")
    assert (tmp_path / "new" / "out" / "cost.csv").read_text() == csv_tables([table])

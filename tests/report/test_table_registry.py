"""Kinds of tables: built-in ones, one from outside, and where they are listed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from longshift.cli.main import app
from longshift.errors import UsageError
from longshift.report import Cell, Column, ReportRuns, Row, Table, build_tables, register_table, table_kinds
from longshift.report.table_registry import _KINDS
from tests.report.fake import frame
from tests.report.folders import write_runs

DOC = Path(__file__).parents[2] / "docs" / "guides" / "report.md"


@pytest.fixture
def counting() -> Iterator[str]:
    """A kind of table as a plugin would register it."""

    @register_table("counting", "number of runs of each method", title="Counted runs", default=False)
    def count(runs: ReportRuns) -> list[Table]:
        counts = runs.frame["method"].value_counts()
        rows = tuple(Row(str(m), str(m), "", (Cell(float(n), digits=0),)) for m, n in counts.items())
        return [Table("counting", "counting", "Runs by method", (Column("runs", higher_is_better=None),), rows)]

    yield "counting"
    del _KINDS["counting"]


@pytest.mark.slow
def test_a_kind_from_outside_is_used_like_the_others(counting: str, tmp_path: Path) -> None:
    write_runs(tmp_path / "runs", ("erm", "ndcl"), trials=1)
    run = CliRunner().invoke
    printed = run(app, ["report", str(tmp_path / "runs"), "--table", counting])
    assert printed.exit_code == 0
    assert "Runs by method" in printed.stdout
    assert "number of runs of each method" in run(app, ["report", "--help"]).stdout
    made = run(app, ["report", str(tmp_path / "runs"), "--table", counting, "--html", str(tmp_path / "page.html")])
    assert made.exit_code == 0
    assert "<h2>Counted runs</h2>" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert counting not in {table.kind for table in build_tables(frame())}


def test_a_name_is_registered_once() -> None:
    with pytest.raises(UsageError, match="which is already registered"):
        register_table("average", "another one")(lambda runs: [])


def test_help_and_documentation_list_every_kind() -> None:
    shown = CliRunner().invoke(app, ["report", "--help"]).stdout
    written = DOC.read_text(encoding="utf-8")
    for kind in table_kinds():
        assert kind.name in shown
        assert f"`{kind.name}`" in written

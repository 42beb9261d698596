"""Parts of tables of runs, and several tables put together."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from longshift.cli.main import app
from longshift.errors import UsageError
from longshift.report.runs import filter_runs, join_runs
from tests.report.fake import frame
from tests.report.folders import write_run


def test_a_run_of_two_folders_counts_once() -> None:
    first = frame(methods=("erm", "ndcl"), trials=2, draws=1)
    first["fingerprint"] = [f"run {i}" for i in range(len(first))]
    assert len(join_runs([first, first])) == len(first)
    second = first.assign(method=first["method"].replace("ndcl", "NDCL, mine"))
    both = join_runs([first, second])
    assert set(both["method"]) == {"erm", "ndcl", "NDCL, mine"}
    assert len(both) == len(first) + int((first["method"] == "ndcl").sum())


def test_a_finished_run_replaces_one_without_a_number() -> None:
    done = frame(methods=("erm",), trials=1, draws=1)
    done["fingerprint"] = [f"run {i}" for i in range(len(done))]
    waiting = done.assign(status="waiting", target_accuracy=float("nan"))
    for given in ([waiting, done], [done, waiting]):
        both = join_runs(given)
        assert len(both) == len(done)
        assert set(both["status"]) == {"done"}
    assert isinstance(both, pd.DataFrame)


@pytest.mark.slow
def test_a_report_on_several_folders(tmp_path: Path) -> None:
    for trial in range(2):
        for target in ("sketch", "photo"):
            write_run(tmp_path / "a" / f"erm-{target}-{trial}", "erm", target, trial, predictions=True)
            write_run(tmp_path / "b" / f"ndcl-{target}-{trial}", "ndcl", target, trial, predictions=True)
    write_run(tmp_path / "b" / "again", "erm", "photo", 0, predictions=True)  # also in the first folder
    folders, page = [str(tmp_path / "a"), str(tmp_path / "b")], tmp_path / "page.html"
    done = CliRunner().invoke(app, ["report", *folders, "--html", str(page), "--json"])
    assert done.exit_code == 0
    found = json.loads(done.stdout)
    assert (found["paths"], found["runs"]) == (folders, 8)
    cells = [cell for cell in found["tables"][0]["cells"] if cell["measure"] == "target_accuracy"]
    assert {cell["method"]: (cell["trials"], cell["runs"]) for cell in cells} == {"erm": (2, 4), "ndcl": (2, 4)}
    assert page.exists()


def test_parts() -> None:
    runs = frame(settings=("Duality", "Cross"), draws=3)
    assert len(filter_runs(runs)) == len(runs)
    assert set(filter_runs(runs, draws=1)["draw"]) == {0}
    assert set(filter_runs(runs, draws=2)["draw"]) == {0, 1}
    assert set(filter_runs(runs, ["Cross"])["setting"]) == {"Cross"}
    with pytest.raises(UsageError, match="Cross"):
        filter_runs(runs, ["Crosss"])

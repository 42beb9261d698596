"""`longshift report` from end to end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from longshift.sweep import as_frame, write_runs
from tests.cli.main_calls import Run
from tests.golden import check_golden
from tests.report.fake import frame, row, rows
from tests.report.folders import write_runs as write_run_folders


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    path = tmp_path / "runs.parquet"
    write_runs(frame(), path)
    return path


@pytest.mark.parametrize(
    ("format_", "sign"),
    [("terminal", "¹ first"), ("markdown", "| NDCL | **"), ("latex", r"\toprule"), ("csv", "table,")],
)
def test_formats(run: Run, runs: Path, format_: str, sign: str) -> None:
    code, out, err = run("report", runs, "--format", format_, "--table", "average")
    assert (code, err) == (0, "")
    assert sign in out
    assert "validation" in out


def test_json_counts_and_names_what_is_missing(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "runs.parquet"
    write_runs(as_frame(r for r in rows(draws=1) if r["method"] != "erm" or r["trial"]), path)
    code, out, _ = run("report", path, "--table", "average", "--json")
    assert code == 0
    found = json.loads(out)
    assert (found["missing"]["count"], found["missing"]["expected"], found["runs"]) == (2, 24, 22)
    assert found["missing"]["runs"][0]["method"] == "erm"


def test_compare_with_the_paper(run: Run, tmp_path: Path) -> None:
    made = [row(m, 0, target=t, dataset="mine", benchmark="PACS", value=v)
            for m, v in (("erm", 0.6), ("coral", 0.65), ("ndcl", 0.7)) for t in ("art_painting", "photo")]  # fmt: skip
    path = tmp_path / "runs.parquet"
    write_runs(as_frame(made), path)
    code, out, err = run("report", path, "--compare", "paper", "--format", "csv")
    assert code == 0
    lines = [line.split(",") for line in out.splitlines()]
    worst = [line for line in lines if line[0] == "paper" and line[3] == "photo" and line[6] == "erm"]
    assert [float(line[9]) for line in worst] == pytest.approx([65.0, 76.6, 65.0 - 76.6])  # 76.6: Tab. worst, PACS, P
    average = [line for line in lines if line[0] == "paper" and line[4] == "target_accuracy" and line[6] == "ndcl"]
    assert float(average[0][9]) == pytest.approx(70)
    assert "18" in err


def test_compare_without_anything_in_common(run: Run, runs: Path) -> None:
    code, _, err = run("report", runs, "--compare", "paper")
    assert code == 0
    assert "PACS" in err


@pytest.fixture
def measured(tmp_path: Path) -> Path:
    """A table of runs with quantities of the theory and curves, on a benchmark of the paper."""
    made = []
    for i, method in enumerate(("erm", "coral", "ndcl", "ndcl+ema")):
        for trial in range(2):
            for j, target in enumerate(("photo", "sketch")):
                value = 0.5 + 0.1 * i - 0.2 * j + 0.01 * trial * (-1) ** i
                more = {"target_margin": value - 0.4, "posterior_target": 0.5 - value**2, "steps": 300}
                made.append(row(method, trial, 0, target, "PACS", value=value, benchmark="PACS", **more))
    frame = as_frame(made).assign(validation_curve="[[100, 0.5], [200, 0.75], [300, 0.8]]")
    path = tmp_path / "measured.parquet"
    write_runs(frame, path)
    return path


def test_the_summary_comes_first_in_the_terminal(run: Run, measured: Path) -> None:
    code, out, _ = run("report", measured)
    assert code == 0
    check_golden("report-terminal.txt", out)
    value = json.loads(run("report", measured, "--json")[1])
    assert [f"- {sentence}" for sentence in value["findings"]] == out.splitlines()[1 : 1 + len(value["findings"])]
    for more in (("--table", "average"), ("--format", "csv")):
        assert "In short" not in run("report", measured, *more)[1]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--table", "averages"), "average"),
        (("--against", "emr"), "erm"),
        (("--setting", "Dualty"), "Duality"),
        (("--table", "paired"), "--against METHOD"),
    ],
)
def test_unknown_names_exit_with_2(run: Run, runs: Path, flags: tuple[str, str], words: str) -> None:
    code, _, err = run("report", runs, *flags)
    assert code == 2
    assert words in err


@pytest.mark.slow
def test_against_adds_a_table_and_draws_and_settings_narrow_all_of_them(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "runs.parquet"
    write_runs(frame(settings=("Duality", "Cross")), path)
    code, out, _ = run("report", path, "--against", "erm", "--draws", 1, "--setting", "Cross", "--json")
    assert code == 0
    shown = json.loads(out)
    assert shown["runs"] == 4 * 2 * 3
    assert [t["kind"] for t in shown["tables"]].count("paired") == 1
    assert [t["name"] for t in shown["tables"] if t["kind"] == "average"] == ["average-cross"]
    page = tmp_path / "page.html"
    assert run("report", path, "--against", "erm", "--html", page)[0] == 0
    assert "table-paired" in page.read_text()


def test_html_from_a_folder_of_runs(run: Run, tmp_path: Path) -> None:
    write_run_folders(tmp_path / "runs", ("erm", "ndcl"))
    code, _, err = run("report", tmp_path / "runs", "--html", tmp_path / "out" / "page.html", "--selection", "last")
    assert code == 0
    assert "page.html" in err
    html = (tmp_path / "out" / "page.html").read_text(encoding="utf-8")
    assert "../runs/ndcl-0-Duality-0/result.json" in html


@pytest.mark.slow
def test_a_folder_of_published_results(run: Run, tmp_path: Path) -> None:
    """runs.parquet with more columns, and the sweep that made it: no data, no run folders, yet all tables."""
    runs = as_frame([*rows(), *rows(methods=("ndcl+ema", "ndcl_prior"), trials=1, draws=1)])
    folder = tmp_path / "results"
    folder.mkdir()
    write_runs(runs.assign(name="x", curve="[0.1, 0.2]", theory_margin=0.3), folder / "runs.parquet")
    code, table, err = run("report", folder, "--format", "markdown")
    assert code == 0
    (folder / "sweep.toml").write_text('settings = ["Duality"]\n[[datasets]]\npath = "not-here.zip"\n')
    code, again, _ = run("report", folder, "--format", "markdown", "--html", tmp_path / "page.html")
    assert code == 0
    assert again == table
    assert "ndcl\\_prior" in table
    (folder / "jobs").mkdir()  # somebody went on with the sweep here
    (folder / "sweep.toml").write_text('settings = ["Dualty"]\n[[datasets]]\npath = "digits"\n')
    code, _, err = run("report", folder)
    assert code == 2
    assert "Duality" in err
    (folder / "jobs").rmdir()
    (folder / "runs.parquet").write_text("method,trial\nerm,zero\n")
    code, _, err = run("report", folder)
    assert code == 1
    assert "runs.parquet" in err


def test_folders_with_runs_further_down_are_refused_with_their_place(run: Run, tmp_path: Path) -> None:
    fit, reproduced = tmp_path / "my fit", tmp_path / "reproduce"
    (fit / "sites").mkdir(parents=True)
    (fit / "plan.json").write_text("{}")
    (reproduced / "store" / "jobs").mkdir(parents=True)
    for folder, runs in ((fit, fit / "sites"), (reproduced, reproduced / "store" / "jobs")):
        code, out, err = run("report", folder)
        assert (code, out) == (2, "")
        assert str(runs) in err

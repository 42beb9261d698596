"""`longshift sweep` as a user calls it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from longshift.cli.main import app
from longshift.errors import LongshiftError, UsageError
from longshift.io import read_toml
from longshift.sweep import best_runs, collect, execute
from longshift.sweep.run_table import run_toml
from longshift.sweep.state import STATES, StatusFacts, write_failure
from longshift.templates import render
from longshift.training import Runtime, TaskCache, parse_run_config
from tests.golden import check_golden
from tests.sweep.small import small_plan, write_sweep


def call(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["sweep", *map(str, arguments)])


def raised(result: Result, kind: type[LongshiftError]) -> str:
    assert isinstance(result.exception, kind), result.output
    return str(result.exception)


@pytest.fixture(scope="module")
def half_done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four jobs, of which two are finished and one failed."""
    folder = tmp_path_factory.mktemp("cli") / "s"
    plan = small_plan(folder)
    for job in plan.jobs[:2]:
        assert execute(job, plan.folder.store, Runtime(device="cpu", keep_model=False), TaskCache()).kind == "done"
    write_failure(plan.folder.store, plan.jobs[2].fingerprint, "unlucky\nsecond line")
    return folder


def test_init_writes_a_file_that_plan_takes(tmp_path: Path) -> None:
    assert call("init", tmp_path / "s").exit_code == 0
    result = call("plan", tmp_path / "s", "--json")
    assert json.loads(result.stdout) == {"jobs": 480, "finished": 0, "failed": 0}
    assert "sweep.toml" in raised(call("init", tmp_path / "s"), UsageError)


def test_status_counts_and_names(half_done: Path) -> None:
    value = json.loads(call("status", half_done, "--json").stdout)
    counts = {"done": 2, "diverged": 0, "failed": 1, "running": 0, "waiting": 1}
    assert {name: value[name] for name in counts} == counts
    assert value["total"] == 4
    assert value["methods"] == {"erm": counts}
    (failure,) = value["failures"]
    assert failure["error"].startswith("unlucky")
    assert "digits/TotalHeavyTail/ink" in failure["what"]
    assert "unlucky" in call("status", half_done).stdout


@pytest.mark.slow
def test_run_finishes_the_rest_and_retry_runs_failed_jobs_again(half_done: Path, tmp_path: Path) -> None:
    shutil.copytree(half_done, tmp_path / "s")
    result = call("run", tmp_path / "s", "--device", "cpu", "--workers", "2", "--json")
    assert "sweep retry" in raised(result, LongshiftError)
    assert json.loads(result.stdout) == {"total": 4, "done": 3, "failed": 1, "here": 1, "in_table": 0}
    assert call("retry", tmp_path / "s").exit_code == 0
    assert json.loads(call("status", tmp_path / "s", "--json").stdout)["waiting"] == 1
    assert call("run", tmp_path / "s", "--device", "cpu").exit_code == 0
    assert "longshift report" in call("plan", tmp_path / "s").stdout


def test_best_prints_the_winning_runs_or_writes_them(half_done: Path, tmp_path: Path) -> None:
    shutil.copytree(half_done, tmp_path / "s")
    printed = call("best", tmp_path / "s")
    assert printed.exit_code == 0
    assert not list(tmp_path.rglob("*.toml")) or sorted(tmp_path.rglob("*.toml")) == [tmp_path / "s" / "sweep.toml"]
    assert call("best", tmp_path / "s", "--out", tmp_path / "best").exit_code == 0
    winners = best_runs(collect(half_done))
    files = sorted((tmp_path / "best").rglob("*.toml"))
    assert len(files) == len(winners) == 2
    for _, row in winners.iterrows():
        path = tmp_path / "best" / "digits" / "TotalHeavyTail" / str(row["target"]) / "erm.toml"
        assert path.read_text() in printed.stdout
        assert parse_run_config(read_toml(path)).fingerprint() == row["fingerprint"]  # the very run, not one like it
    assert isinstance(call("best", write_sweep(tmp_path / "empty")).exception, LongshiftError)


def test_a_drawn_winner_keeps_all_digits(tmp_path: Path) -> None:
    for job in small_plan(tmp_path / "s", methods=["ndcl"], trials=2, draws=3).jobs:
        (tmp_path / "run.toml").write_text(run_toml(job.run))
        assert parse_run_config(read_toml(tmp_path / "run.toml")).fingerprint() == job.fingerprint


def test_bad_requests(tmp_path: Path) -> None:
    write_sweep(tmp_path)
    assert "slurm" in raised(call("run", tmp_path, "--launcher", "slurm"), UsageError)
    assert "tensorboard" in raised(call("run", tmp_path, "--track", "tensorbord"), UsageError)
    assert "--workers" in call("run", tmp_path, "--device", "cpu", "--workers", "0").output
    assert "sweep init" in raised(call("status", tmp_path / "nowhere"), UsageError)


def test_the_words_of_plan_and_status() -> None:
    table = {"methods": "ab", "variants": "a", "settings": "a", "trials": "abc", "draws": 10}
    sweep = {"table": table, "datasets": [{"name": "digits", "targets": "a"}, {"name": "pacs", "targets": "ab"}]}
    counts = dict(zip(STATES, (9, 1, 2, 0, 168), strict=True))
    facts = StatusFacts(Path("my-sweep"), 180, counts, {}, [], 0, Path("my-sweep/runs.parquet"))
    check_golden("sweep-plan.txt", render("longshift.sweep", "plan.txt.j2", facts=facts, sweep=sweep, repeated=20))
    failures = [
        {"job": f"{i:016x}", "what": f"erm on digits/Cross/ink, trial 0, draw {i}", "error": "out of luck"}
        for i in range(11)
    ]
    counts = dict(zip(STATES, (4, 1, 11, 2, 3), strict=True))
    status = StatusFacts(Path("my-sweep"), 21, counts, {"erm": counts}, failures, 2, Path("my-sweep/runs.parquet"))
    check_golden("sweep-status.txt", render("longshift.sweep", "status.txt.j2", facts=status))

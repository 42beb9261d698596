"""Finished runs as a table: a sweep resumes from one that was made elsewhere, and `collect` loses nothing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from longshift.cli.main import app
from longshift.errors import LongshiftError
from longshift.sweep import (
    Plan,
    best_configs,
    collect,
    collect_plan,
    execute,
    load_plan,
    make_queue,
    read_runs,
    read_states,
    write_runs,
)
from longshift.training import RunFolder, Runtime, TaskCache, read_metrics
from tests.sweep.small import small_plan, table_bytes

pytestmark = pytest.mark.slow
# Four runs: one under two names, one with averaged weights (two rows), one that diverges, one more.
SWEEP: dict[str, Any] = {
    "targets": ["ink"], "draws": 1,
    "variants": [
        {"name": "same", "method": "erm"},
        {"name": "mean", "method": "erm", "average": "ema"},
        {"name": "wild", "method": "erm", "hparams": {"lr": 1e30, "weight_decay": 0.0}},
        {"name": "wide", "method": "erm", "hparams": {"batch_size": 4}},
    ],
}  # fmt: skip
EARLY = ("erm", "mean", "wild")


def call(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["sweep", *map(str, arguments)])


def run(plan: Plan, *methods: str) -> list[str]:
    """Run what the job_queue gives out (of some methods) in this process; the methods that ran."""
    job_queue, tasks, ran = make_queue(plan), TaskCache(), []
    while job := job_queue.next_job():
        if not methods or job.method in methods:
            assert execute(job, job_queue.store, Runtime(device="cpu", keep_model=False), tasks).kind == "done"
            ran.append(job.method)
    return ran


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """all: made in one go. first: three of the four runs, collected. Both are only read."""
    root = tmp_path_factory.mktemp("parts")
    assert run(small_plan(root / "all", **SWEEP)) == ["erm", "mean", "wild", "wide"]
    assert run(small_plan(root / "first", **SWEEP), *EARLY) == list(EARLY)
    assert call("collect", root / "first").exit_code == 0
    return root


@pytest.fixture
def second(parts: Path, tmp_path: Path) -> Path:
    """Another machine, with the sweep file and the table alone."""
    (tmp_path / "second").mkdir()
    for name in ("sweep.toml", "runs.parquet"):
        shutil.copy(parts / "first" / name, tmp_path / "second" / name)
    return tmp_path / "second"


def rows(folder: Path) -> list[str]:
    """The methods in the table of a sweep after `sweep collect`."""
    assert call("collect", folder).exit_code == 0
    return list(read_runs(folder / "runs.parquet")["method"])


def test_only_what_the_table_lacks_runs_and_the_tables_are_equal(parts: Path, second: Path) -> None:
    value = json.loads(call("status", second, "--json").stdout)
    counts = {name: value[name] for name in ("total", "done", "diverged", "waiting")}
    assert counts == {"total": 4, "done": 2, "diverged": 1, "waiting": 1}
    assert value["methods"]["same"]["done"] == 1
    job_queue = make_queue(load_plan(second))
    assert (job_queue.done, job_queue.in_table, len(job_queue.waiting)) == (3, 3, 1)
    assert call("run", second, "--device", "cpu", "--workers", "1", "--quiet").exit_code == 0
    assert len(list(second.glob("jobs/*/result.json"))) == 1
    assert table_bytes(second) == table_bytes(parts / "all")
    assert len(rows(second)) == 6
    shutil.rmtree(second / "jobs")  # now the table has it all
    assert run(load_plan(second)) == []
    before = (second / "runs.parquet").read_bytes()
    assert len(rows(second)) == 6
    assert (second / "runs.parquet").read_bytes() == before
    assert table_bytes(second) == table_bytes(parts / "all")


def test_each_row_comes_back_as_it_was(parts: Path, second: Path) -> None:
    (second / "jobs").mkdir()  # a store that has no result yet
    first, found = collect(parts / "first"), collect(second)
    assert list(found["method"]) == ["erm", "mean", "mean+ema", "same", "wild"]
    pd.testing.assert_frame_equal(found, first, check_exact=True)
    assert dict(zip(found["method"], found["status"], strict=True))["wild"] == "diverged"
    left = collect(second, missing=True)
    assert list(left.loc[left["status"] == "waiting", "method"]) == ["wide"]
    plan = load_plan(second)
    best = [config.file.stem for config in best_configs(plan, collect_plan(plan))]
    # A name that cannot be a file name as it is carries a hash, so that no two names share a file.
    assert {stem.partition("-")[0] for stem in best} == {"erm", "same", "mean", "mean_ema"}


def test_the_stores_own_result_wins(parts: Path, second: Path) -> None:
    before = (second / "runs.parquet").read_bytes()
    table = read_runs(second / "runs.parquet")
    table.loc[table["method"].isin(["erm", "same"]), "target_accuracy"] = 0.123
    write_runs(table, second / "runs.parquet")
    plan = load_plan(second)
    assert set(collect_plan(plan).query("method in ('erm', 'same')")["target_accuracy"]) == {0.123}
    erm = next(job for job in plan.jobs if job.method == "erm")
    shutil.copytree(parts / "first" / "jobs" / erm.id, second / "jobs" / erm.id)
    assert not read_states(load_plan(second))[erm.fingerprint].in_table
    assert len(rows(second)) == 5
    assert (second / "runs.parquet").read_bytes() == before


def test_rows_that_are_no_longer_planned_are_kept(second: Path) -> None:
    before = (second / "runs.parquet").read_bytes()
    small_plan(second, targets=["ink"], draws=1, variants=[{"name": "mean", "method": "erm", "average": "ema"}])
    assert len(rows(second)) == 5
    assert (second / "runs.parquet").read_bytes() == before


def test_collect_loses_nothing(second: Path, tmp_path: Path) -> None:
    small_plan(tmp_path / "empty")
    assert isinstance(call("collect", tmp_path / "empty").exception, LongshiftError)
    assert not (tmp_path / "empty" / "runs.parquet").exists()
    write_runs(read_runs(second / "runs.parquet").assign(remark="mine"), second / "runs.parquet")
    before = (second / "runs.parquet").read_bytes()
    assert "remark" in str(call("collect", second).exception)
    assert (second / "runs.parquet").read_bytes() == before


def test_curves_are_those_of_the_evaluations(parts: Path) -> None:
    plan = load_plan(parts / "all")
    frame = collect(parts / "all").set_index("method")
    for method, name in (("erm", "validation"), ("mean", "validation"), ("mean+ema", "averaged_validation")):
        job = next(job for job in plan.jobs if job.method == method.removesuffix("+ema"))
        lines = read_metrics(RunFolder(plan.folder.store.job(job.fingerprint)))
        points = json.loads(str(frame["validation_curve"][method]))
        assert points == [[line["step"], round(line[name]["accuracy"], 4)] for line in lines]
        assert [step for step, _ in points] == [2, 3]
    assert frame["validation_curve"]["wild"] == ""


def test_collect_takes_sweeps_and_folders_of_runs(parts: Path) -> None:
    plan, runs = load_plan(parts / "all"), collect(parts / "all" / "jobs")
    own = collect_plan(plan)[lambda frame: frame["method"].isin(["erm"])].reset_index(drop=True)
    same = runs["fingerprint"].isin(own["fingerprint"])
    assert runs[same].reset_index(drop=True).equals(own)
    assert set(runs["fingerprint"]) == {job.fingerprint for job in plan.jobs}

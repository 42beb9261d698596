"""`longshift sweep` as a user calls it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from longshift.cli.main import app
from longshift.errors import ConfigError, LongshiftError, UsageError
from longshift.io import read_toml
from longshift.results.selection import best_runs
from longshift.sweep.collecting import collect
from longshift.sweep.job_store import write_failure
from longshift.sweep.jobs import load_plan
from longshift.sweep.run_job import execute
from longshift.training.run_config import Runtime, parse_run_config
from longshift.training.task import TaskCache
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
    write_failure(plan.folder.store, plan.jobs[2].fingerprint, "out of luck\nsecond line")
    return folder


def test_init_writes_a_file_that_plan_takes(tmp_path: Path) -> None:
    assert call("init", tmp_path / "s").exit_code == 0
    result = call("plan", tmp_path / "s", "--no-measure", "--json")
    assert json.loads(result.stdout) == {"jobs": 480, "finished": 0, "failed": 0}
    assert "Expected a folder without sweep.toml" in raised(call("init", tmp_path / "s"), UsageError)


def test_three_mistakes_three_messages(tmp_path: Path) -> None:
    write_sweep(tmp_path, methods=["erm", "ndlc"], settings=["Dualty"], trials=0)
    for verb in ("plan", "run"):
        text = raised(call(verb, tmp_path), ConfigError)
        assert text.startswith("3 mistakes in")
        assert text.count("\n  - ") == 3


def test_status_counts_and_names(half_done: Path) -> None:
    value = json.loads(call("status", half_done, "--json").stdout)
    counts = {"done": 2, "diverged": 0, "failed": 1, "running": 0, "corrupt": 0, "waiting": 1}
    assert {name: value[name] for name in counts} == counts
    assert value["total"] == 4
    assert value["methods"] == {"erm": counts}
    (failure,) = value["failures"]
    assert failure["error"] == "out of luck"
    assert failure["what"] == "erm on digits/TotalHeavyTail/ink, trial 0, draw 1"
    text = call("status", half_done).stdout
    assert "2 of 4 jobs" in text
    assert "out of luck" in text


def test_plan_measures_what_is_left(half_done: Path) -> None:
    result = call("plan", half_done, "--json", "--quiet", "--device", "cpu", "--workers", "3")
    value = json.loads(result.stdout)
    assert (value["jobs"], value["finished"], value["failed"], value["slots"]) == (4, 2, 1, 3)
    frame = collect(half_done)
    # A method with finished jobs is judged by them.
    assert value["seconds_per_step"]["erm"] == pytest.approx(frame["seconds_per_step"].mean(), abs=1e-5)
    assert 0 < value["hours"] < 1


def test_retry_forgives(half_done: Path, tmp_path: Path) -> None:
    shutil.copytree(half_done, tmp_path / "s")
    assert "1 failed job will run again" in call("retry", tmp_path / "s").stdout
    assert "0 failed jobs" in call("retry", tmp_path / "s").stdout
    assert json.loads(call("status", tmp_path / "s", "--json").stdout)["waiting"] == 2


@pytest.mark.slow
def test_run_finishes_the_rest_and_says_that_some_failed(half_done: Path, tmp_path: Path) -> None:
    shutil.copytree(half_done, tmp_path / "s")
    result = call("run", tmp_path / "s", "--device", "cpu", "--workers", "2")
    assert result.stderr.splitlines()[0] == "4 jobs, 1 remaining, 1 at a time on cpu"
    text = raised(result, LongshiftError)
    assert text.startswith("1 job failed")
    assert "sweep retry" in text
    value = json.loads(call("status", tmp_path / "s", "--json").stdout)
    assert (value["done"], value["failed"], value["waiting"]) == (3, 1, 0)
    assert "start with: longshift sweep run" in call("plan", tmp_path / "s", "--no-measure").stdout
    call("retry", tmp_path / "s")
    assert call("run", tmp_path / "s", "--device", "cpu").exit_code == 0
    text = call("plan", tmp_path / "s", "--no-measure").stdout
    assert "nothing left to run; make tables with: longshift report" in text
    assert "start with" not in text


def test_best_names_the_winning_run(half_done: Path, tmp_path: Path) -> None:
    assert call("best", half_done, "--out", tmp_path / "best").exit_code == 0
    frame = collect(half_done)
    winners = best_runs(frame)
    files = sorted((tmp_path / "best").rglob("*.toml"))
    assert len(files) == len(winners) == 2
    for _, row in winners.iterrows():
        path = tmp_path / "best" / "digits" / "TotalHeavyTail" / str(row["target"]) / "erm.toml"
        config = parse_run_config(read_toml(path))
        assert config.fingerprint() == row["fingerprint"]  # the very run, not one like it
    empty = write_sweep(tmp_path / "empty")
    assert "Expected finished jobs" in raised(call("best", empty), LongshiftError)


def test_a_drawn_winner_keeps_all_digits(tmp_path: Path) -> None:
    from longshift.sweep.best_configs import run_toml

    plan = small_plan(tmp_path / "s", methods=["ndcl"], trials=2, draws=3)
    for job in plan.jobs:
        config = parse_run_config(job.run)
        path = tmp_path / "run.toml"
        path.write_text(run_toml(job.run, {"hparams": config.method_config().to_dict(), "style": {}}))
        assert parse_run_config(read_toml(path)).fingerprint() == job.fingerprint


def test_bad_requests(tmp_path: Path) -> None:
    write_sweep(tmp_path)
    assert "known: local, ray" in raised(call("run", tmp_path, "--launcher", "slurm"), UsageError)
    assert "tensorboard" in raised(call("run", tmp_path, "--track", "tensorbord"), UsageError)
    assert "--workers" in raised(call("run", tmp_path, "--device", "cpu", "--workers", "0"), UsageError)
    assert "sweep init" in raised(call("status", tmp_path / "nowhere"), UsageError)


def test_collect_takes_sweeps_and_folders_of_runs(half_done: Path) -> None:
    frame = collect(half_done)
    runs = collect(half_done / "jobs")
    assert frame.equals(runs)
    everything = collect(half_done, missing=True)
    assert everything["status"].value_counts().to_dict() == {"done": 2, "failed": 1, "waiting": 1}
    assert set(everything["fingerprint"]) == {job.fingerprint for job in load_plan(half_done).jobs}
    assert everything.loc[everything["status"] != "done", "target_accuracy"].isna().all()

"""A sweep goes on from a table of runs that were made elsewhere."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from longshift.cli.main import app
from longshift.errors import LongshiftError
from longshift.results import (
    BadResult,
    drop_machine_columns,
    read_runs,
    register_column,
    unregister_column,
    write_runs,
)
from longshift.results.run_schema import run_columns
from longshift.results.run_summary import with_average
from longshift.sweep.collecting import collect
from longshift.sweep.job_queue import make_queue
from longshift.sweep.job_status import job_entries
from longshift.sweep.job_store import scan_jobs, write_failure
from longshift.sweep.jobs import Plan, load_plan
from longshift.sweep.run_job import execute
from longshift.training.run_config import Runtime
from longshift.training.run_folder import RunFolder, read_metrics
from longshift.training.task import TaskCache
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


def said(*arguments: str | Path) -> str:
    result = call(*arguments)
    assert result.exit_code == 0, result.exception
    return " ".join(result.stdout.split())


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
    assert "wrote" in said("collect", root / "first")
    return root


@pytest.fixture
def second(parts: Path, tmp_path: Path) -> Path:
    """Another machine, with the sweep file and the table alone."""
    (tmp_path / "second").mkdir()
    for name in ("sweep.toml", "runs.parquet"):
        shutil.copy(parts / "first" / name, tmp_path / "second" / name)
    return tmp_path / "second"


def test_only_what_the_table_lacks_runs_and_the_tables_are_equal(parts: Path, second: Path) -> None:
    assert "finished: 3, failed: 0, remaining: 1" in said("plan", second, "--no-measure")
    value = json.loads(said("status", second, "--json"))
    assert {name: value[name] for name in ("total", "done", "diverged", "waiting")} == {
        "total": 4, "done": 2, "diverged": 1, "waiting": 1,
    }  # fmt: skip
    assert value["methods"]["same"]["done"] == 1
    assert f"3 of them are only in {second / 'runs.parquet'}" in said("status", second)
    text = said("run", second, "--device", "cpu", "--workers", "1", "--quiet")
    assert text.startswith(f"3 of 4 jobs were already in {second / 'runs.parquet'}")
    assert text.endswith("finished: 4 of 4 jobs, 1 by this command")
    ran = [
        job.method for job in load_plan(second).runs if (job_folder(second, job.fingerprint) / "result.json").exists()
    ]
    assert ran == ["wide"]
    assert table_bytes(second) == table_bytes(parts / "all")
    assert "6 rows of 4 runs" in said("collect", second)
    shutil.rmtree(second / "jobs")  # now the table has it all
    assert run(load_plan(second)) == []
    assert "6 rows of 4 runs" in said("collect", second, "--out", second / "again.parquet")
    assert (second / "again.parquet").read_bytes() == (second / "runs.parquet").read_bytes()
    assert table_bytes(second) == table_bytes(parts / "all")


def job_folder(folder: Path, fingerprint: str) -> Path:
    return load_plan(folder).folder.store.job(fingerprint)


def test_four_small_jobs_two_here_two_there(tmp_path: Path) -> None:
    calm, here, there = (small_plan(tmp_path / name) for name in ("calm", "here", "there"))
    tasks = TaskCache()
    for job in here.jobs[:2]:
        assert execute(job, here.folder.store, Runtime(device="cpu", keep_model=False), tasks).kind == "done"
    assert "wrote" in said("collect", tmp_path / "here")
    shutil.copy(tmp_path / "here" / "runs.parquet", tmp_path / "there" / "runs.parquet")
    assert len(run(there)) == 2
    entries = scan_jobs(there.folder.store, [job.fingerprint for job in there.jobs])
    assert [entries[job.fingerprint].state for job in there.jobs] == ["waiting", "waiting", "done", "done"]
    assert len(run(calm)) == 4
    assert table_bytes(tmp_path / "there") == table_bytes(tmp_path / "calm")


def test_each_row_comes_back_as_it_was(parts: Path, second: Path) -> None:
    (second / "jobs").mkdir()  # a store that has no result yet
    first, found = collect(parts / "first"), collect(second)
    assert list(found["method"]) == ["erm", "mean", "mean+ema", "same", "wild"]
    pd.testing.assert_frame_equal(found, first, check_exact=True)
    assert dict(zip(found["method"], found["status"], strict=True))["wild"] == "diverged"
    left = collect(second, missing=True)
    assert list(left.loc[left["status"] == "waiting", "method"]) == ["wide"]
    assert "wrote 4 files" in said("best", second)  # neither of the diverged run nor of the one that is left
    best = {path.stem for path in (second / "best").rglob("*.toml")}
    # A name that cannot be a file name as it is carries a hash, so that no two names share a file.
    assert {stem.partition("-")[0] for stem in best} == {"erm", "same", "mean", "mean_ema"}


def test_a_variant_that_comes_later_shares_the_tables_run(second: Path) -> None:
    variants = [
        *SWEEP["variants"],
        {"name": "late", "method": "erm"},
        {"name": "late mean", "method": "erm", "average": "ema"},
    ]
    plan = small_plan(second, **{**SWEEP, "variants": variants})
    entries = job_entries(plan)
    assert [job.method for job in plan.runs if entries[job.fingerprint].state == "waiting"] == ["wide"]
    (second / "jobs").mkdir()
    frame = collect(second)
    for late, early in (("late", "erm"), ("late mean", "mean"), ("late mean+ema", "mean+ema")):
        new, old = (
            frame[frame["method"] == name].drop(columns="method").reset_index(drop=True) for name in (late, early)
        )
        pd.testing.assert_frame_equal(new, old, check_exact=True)
        assert new["validation_curve"][0] != ""


def test_the_stores_own_result_wins(parts: Path, second: Path) -> None:
    before = (second / "runs.parquet").read_bytes()
    table = read_runs(second / "runs.parquet")
    table.loc[table["method"].isin(["erm", "same"]), "target_accuracy"] = 0.123
    write_runs(table, second / "runs.parquet")
    (second / "jobs").mkdir()
    assert set(collect(second).query("method in ('erm', 'same')")["target_accuracy"]) == {0.123}
    own = parts / "first" / "jobs"
    erm = next(job for job in load_plan(second).jobs if job.method == "erm")
    shutil.copytree(own / erm.id, second / "jobs" / erm.id)
    assert not job_entries(load_plan(second))[erm.fingerprint].elsewhere
    assert "5 rows" in said("collect", second)
    assert (second / "runs.parquet").read_bytes() == before


def test_what_failed_here_is_finished_by_the_table(second: Path) -> None:
    plan = load_plan(second)
    for job in plan.runs:
        write_failure(plan.folder.store, job.fingerprint, "out of luck")
    assert [job_entries(plan)[job.fingerprint].state for job in plan.runs] == ["done", "done", "diverged", "failed"]
    job_queue = make_queue(plan)
    assert (job_queue.done, job_queue.failed, job_queue.in_table, len(job_queue.waiting)) == (3, 1, 3, 0)


def test_rows_that_are_no_longer_planned_are_kept(second: Path) -> None:
    before = (second / "runs.parquet").read_bytes()
    small_plan(second, targets=["ink"], draws=1, variants=[{"name": "mean", "method": "erm", "average": "ema"}])
    assert "5 rows of 3 runs" in said("collect", second)
    assert (second / "runs.parquet").read_bytes() == before
    assert "3 rows of 2 runs" in said("collect", second, "--plan-only", "--out", second / "plan.csv")
    assert list(read_runs(second / "plan.csv")["method"]) == ["erm", "mean", "mean+ema"]
    assert "wrote 3 files" in said("best", second)  # erm, mean, mean+ema


def test_collect_loses_nothing(second: Path, tmp_path: Path) -> None:
    small_plan(tmp_path / "empty")
    assert "Expected finished jobs" in str(call("collect", tmp_path / "empty").exception)
    assert not (tmp_path / "empty" / "runs.parquet").exists()
    table = read_runs(second / "runs.parquet").assign(remark="mine")
    write_runs(table, second / "runs.parquet")
    before = (second / "runs.parquet").read_bytes()
    assert "remark" in str(call("collect", second).exception)
    assert (second / "runs.parquet").read_bytes() == before
    assert "5 rows" in said("collect", second, "--out", second / "other.csv")


def test_a_table_without_machine_columns(second: Path) -> None:
    table = drop_machine_columns(read_runs(second / "runs.parquet"))
    write_runs(table, second / "runs.parquet")
    plan = load_plan(second)
    assert make_queue(plan).in_table == 3
    assert "remaining: 1" in said("plan", second, "--device", "cpu", "--workers", "1", "--quiet")  # it has no times
    assert "5 rows" in said("collect", second)
    assert read_runs(second / "runs.parquet")["seconds_total"].isna().all()


def test_a_csv_table_serves_as_well_and_parquet_wins(second: Path) -> None:
    write_runs(read_runs(second / "runs.parquet"), second / "runs.csv")
    before = (second / "runs.parquet").read_bytes()
    (second / "runs.parquet").unlink()
    assert make_queue(load_plan(second)).in_table == 3
    assert "5 rows" in said("collect", second)
    assert (second / "runs.parquet").read_bytes() == before
    (second / "runs.csv").write_text("")
    assert make_queue(load_plan(second)).in_table == 3


def _cell(row: int, column: str, value: Any) -> Callable[[pd.DataFrame], pd.DataFrame]:
    def change(frame: pd.DataFrame) -> pd.DataFrame:
        frame[column] = frame[column].astype(object)
        frame.loc[row, column] = value
        return frame

    return change


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (_cell(0, "status", "dome"), "got 'dome'"),
        (_cell(0, "fingerprint", ""), "which run it is"),
        (_cell(0, "validation_accuracy", None), "is done, but has no numbers"),
        (_cell(0, "hparams", '{"lr": 0.'), "expected JSON as hparams"),
        (_cell(1, "validation_curve", "[[2, 0."), "expected JSON as validation_curve"),
        (_cell(0, "target_accuracy", 0.5), "two rows that differ in target_accuracy"),
        (_cell(1, "target_accuracy", float("inf")), "not finite"),
        (_cell(0, "steps", "many"), "Expected a table of runs"),
        (_cell(0, "draw", None), "an empty trial or draw in 1 row"),
        (lambda frame: frame.drop(columns="steps"), "without the columns steps"),
        (lambda frame: frame[frame["method"] != "mean"], "got mean+ema"),
    ],
)  # fmt: skip
def test_a_damaged_table_is_an_error_everywhere(
    second: Path, damage: Callable[[pd.DataFrame], pd.DataFrame], words: str
) -> None:
    write_runs(damage(read_runs(second / "runs.parquet")), second / "runs.csv")
    (second / "runs.parquet").unlink()
    before = (second / "runs.csv").read_bytes()
    for verb in ("status", "collect", "best", "run"):
        error = call(verb, second).exception
        assert isinstance(error, LongshiftError), verb
        assert words in str(error)
        assert str(second / "runs.csv") in str(error)
        assert "Restore the file, or remove it" in str(error)
    assert (second / "runs.csv").read_bytes() == before
    assert not (second / "jobs").exists()


@pytest.mark.parametrize("name", ["runs.parquet", "runs.csv"])
def test_a_table_that_was_cut_off_is_an_error(second: Path, name: str) -> None:
    write_runs(read_runs(second / "runs.parquet"), second / name)
    if name == "runs.csv":
        (second / "runs.parquet").unlink()
    content = (second / name).read_bytes()
    last = content.rstrip().rindex(b"\n")
    for end in (0, 10, (last + 10 + len(content)) // 2, (last + len(content)) // 2):
        (second / name).write_bytes(content[:end])
        with pytest.raises(LongshiftError, match=name):
            make_queue(load_plan(second))
    (second / name).write_bytes(b"\xff\xfe\x00" + content[:-1])
    with pytest.raises(LongshiftError, match=name):
        make_queue(load_plan(second))


def test_curves_are_those_of_the_evaluations(parts: Path) -> None:
    plan = load_plan(parts / "all")
    frame = collect(parts / "all").set_index("method")
    for method, name in (("erm", "validation"), ("mean", "validation"), ("mean+ema", "averaged_validation")):
        job = next(job for job in plan.jobs if job.method == method.removesuffix("+ema"))
        rows = read_metrics(RunFolder(plan.folder.store.job(job.fingerprint)))
        points = json.loads(str(frame["validation_curve"][method]))
        assert [step for step, _ in points] == [2, 3]
        for (_, value), row in zip(points, rows, strict=True):
            assert value == pytest.approx(row[name]["accuracy"], abs=5.1e-5)
            assert len(repr(value)) <= 6
    assert frame["validation_curve"]["wild"] == ""


def test_a_curve_has_four_digits() -> None:
    (column,) = (c for c in run_columns() if c.name == "validation_curve")
    lines = [{"step": 300, "validation": {"accuracy": 1 / 3}}, {"step": 600, "validation": {"accuracy": 0.7000049}}]
    assert column.value({"evaluations": lines}) == "[[300, 0.3333], [600, 0.7]]"
    assert column.value({"evaluations": []}) == ""
    with pytest.raises(BadResult, match="finite"):
        column.value({"evaluations": [{"step": 1, "validation": {"accuracy": float("nan")}}]})


def test_an_average_has_its_own_values() -> None:
    row = {"method": "erm", "setting": "Duality", "target_few": 0.1, "averaged": {"kind": "swa", "target_few": 0.2}}
    assert list(with_average(row)) == [
        {"method": "erm", "setting": "Duality", "target_few": 0.1},
        {"method": "erm+swa", "setting": "Duality", "target_few": 0.2},
    ]


def test_an_index_without_a_present_column_is_read_again(parts: Path, tmp_path: Path) -> None:
    shutil.copytree(parts / "all", tmp_path / "s")
    before = collect(tmp_path / "s")
    register_column("batch_size", "integer", "samples per domain", lambda result: result["hparams"]["batch_size"])
    try:
        after = collect(tmp_path / "s")
    finally:
        unregister_column("batch_size")
    assert after.columns[-1] == "batch_size"
    assert dict(zip(after["method"], after["batch_size"], strict=True))["wide"] == 4
    assert collect(tmp_path / "s").equals(before)

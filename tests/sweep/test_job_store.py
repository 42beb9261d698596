"""The folder of jobs: corrupt results, failures, stops and full disks."""

from __future__ import annotations

import errno
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from longshift.data import DataChanged
from longshift.errors import LongshiftError
from longshift.results import BadResult, read_summary
from longshift.sweep import job_claims as claims, job_store as store
from longshift.sweep.job_store import Outcome
from longshift.sweep.jobs import Job, Plan
from longshift.sweep.run_job import _trouble, disk_full, execute, not_to_blame
from longshift.training import checkpoint
from longshift.training.run_config import Runtime
from longshift.training.task import TaskCache
from tests.registries import restore_registries
from tests.sweep.small import small_plan

RUNTIME = Runtime(device="cpu", keep_model=False, checkpoint_every=1)
TASKS = TaskCache()


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    """A sweep of two finished jobs; tests work on copies."""
    plan = small_plan(tmp_path_factory.mktemp("sweep") / "s", draws=1)
    for job in plan.jobs:
        assert execute(job, plan.folder.store, RUNTIME, TASKS) == Outcome("done")
    return plan


@pytest.fixture
def plan(finished: Plan, tmp_path: Path) -> Plan:
    shutil.copytree(finished.folder.path, tmp_path / "s")
    return small_plan(tmp_path / "s", draws=1)


def _states(plan: Plan) -> list[str]:
    entries = store.scan_jobs(plan.folder.store, [job.fingerprint for job in plan.jobs])
    return [entries[job.fingerprint].state for job in plan.jobs]


def _break(plan: Plan, how: str) -> Path:
    path = plan.folder.store.job(plan.jobs[0].fingerprint) / "result.json"
    value = json.loads(path.read_text())
    if how == "half":
        path.write_text(path.read_text()[: path.stat().st_size // 2])
        return path
    if how == "empty":
        path.write_text("")
        return path
    if how == "schema":
        value["schema"] = 99
    elif how == "another run":
        value["fingerprint"] = "0" * 64
    elif how == "nan":
        value["selected"]["target"]["accuracy"] = float("nan")
    elif how == "lacks a set":
        del value["selected"]["target"]["few"]
    elif how == "status":
        value["status"] = "well"
    elif how == "list":
        value = [1]
    elif how == "no evaluation":
        value["selected"] = None
    path.write_text(json.dumps(value))
    return path


BREAKS = ["half", "empty", "schema", "another run", "nan", "lacks a set", "status", "list", "no evaluation"]


@pytest.mark.parametrize("how", BREAKS)
def test_a_corrupt_result_is_noticed(plan: Plan, how: str) -> None:
    assert _states(plan) == ["done", "done"]
    path = _break(plan, how)
    with pytest.raises(BadResult):
        read_summary(path.parent, plan.jobs[0].fingerprint)
    assert _states(plan) == ["corrupt", "done"]


@pytest.mark.slow
def test_a_corrupt_result_is_put_aside_and_its_job_runs_again(plan: Plan) -> None:
    place, job = plan.folder.store, plan.jobs[0]
    good = read_summary(place.job(job.fingerprint), job.fingerprint)
    path = _break(plan, "lacks a set")
    broken = path.read_text()
    assert _states(plan) == ["corrupt", "done"]
    assert execute(job, place, RUNTIME, TASKS) == Outcome("done")
    assert _states(plan) == ["done", "done"]
    (kept,) = place.quarantine.iterdir()
    assert (kept / "result.json").read_text() == broken
    assert (kept / "why.txt").read_text()
    machine = {"seconds_per_step", "seconds_total"}
    again = read_summary(path.parent, job.fingerprint)
    assert {k: v for k, v in again.items() if k not in machine} == {k: v for k, v in good.items() if k not in machine}


def test_broken_metrics_of_a_full_evaluation_count_as_corrupt(plan: Plan) -> None:
    (plan.folder.store.job(plan.jobs[0].fingerprint) / "metrics.jsonl").write_text('{"step": 2, "target": {"acc')
    plan.folder.store.index.unlink()
    assert _states(plan) == ["corrupt", "done"]


def test_a_finished_job_is_not_run_again(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longshift.sweep.run_job.Trainer", None)
    assert execute(plan.jobs[0], plan.folder.store, RUNTIME, TASKS).kind == "done"


def test_the_index_is_only_a_cache(plan: Plan) -> None:
    place = plan.folder.store
    fingerprints = [job.fingerprint for job in plan.jobs]
    rows = {name: entry.row() for name, entry in store.scan_jobs(place, fingerprints).items()}
    for text in (None, "", "rubbish\n", "a\tb\tc\tdone\t{}\n", place.index.read_text()[:-40]):
        if text is None:
            place.index.unlink(missing_ok=True)
        else:
            place.index.write_text(text)
        assert {name: entry.row() for name, entry in store.scan_jobs(place, fingerprints).items()} == rows
        assert {name: line.entry.row() for name, line in store.read_index(place).items() if name in rows} == rows
    shutil.rmtree(place.job(fingerprints[0]))
    assert _states(plan) == ["waiting", "done"]


@pytest.mark.slow
def test_what_a_method_raises_is_kept_and_counted(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    place, job = plan.folder.store, plan.jobs[0]
    shutil.rmtree(place.job(job.fingerprint))

    def explode(*arguments: Any) -> None:
        raise RuntimeError("the method went wrong")

    with monkeypatch.context() as patch:
        patch.setattr("longshift.methods.erm.ERM.loss", explode)
        outcome = execute(job, place, RUNTIME, TASKS)
    assert outcome == Outcome("failed", "RuntimeError: the method went wrong")
    failure = json.loads(place.failure(job.fingerprint).read_text())
    assert "in explode" in failure["traceback"]
    assert store.read_failure(place, job.fingerprint) == "RuntimeError: the method went wrong"
    assert _states(plan) == ["failed", "done"]
    assert execute(job, place, RUNTIME, TASKS).kind == "failed"  # not before it is forgiven
    assert store.clear_failures(place, [j.fingerprint for j in plan.jobs]) == 1
    assert execute(job, place, RUNTIME, TASKS) == Outcome("done")
    assert _states(plan) == ["done", "done"]


def test_a_job_that_runs_elsewhere_is_left_alone(plan: Plan) -> None:
    place, job = plan.folder.store, plan.jobs[0]
    shutil.rmtree(place.job(job.fingerprint))
    claim = claims.take(place.claim(job.fingerprint))
    assert claim is not None
    with claim:
        assert _states(plan) == ["running", "done"]
        assert execute(job, place, RUNTIME, TASKS) == Outcome("busy")
    assert _states(plan) == ["waiting", "done"]


@pytest.mark.slow
@pytest.mark.parametrize("damaged", [False, True])
def test_a_stopped_job_goes_on_to_the_same_numbers(plan: Plan, damaged: bool) -> None:
    place, job = plan.folder.store, plan.jobs[0]
    folder = place.job(job.fingerprint)
    expected = (folder / "metrics.jsonl").read_text(), read_summary(folder, job.fingerprint)
    shutil.rmtree(folder)
    assert execute(job, place, RUNTIME, TASKS, stop=lambda: True).kind == "stopped"
    assert checkpoint.load_resume(folder / "resume.pt", torch.device("cpu"))["progress"]["step"] == 1
    if damaged:
        (folder / "resume.pt").write_bytes((folder / "resume.pt").read_bytes()[:1000])
    assert execute(job, place, RUNTIME, TASKS) == Outcome("done")
    found = read_summary(folder, job.fingerprint)
    for name, value in expected[1].items():
        if not name.startswith("seconds"):
            assert found[name] == value, name


@pytest.mark.slow
@pytest.mark.parametrize("writer", ["checkpoint.save_resume", "model_file.save_weights"])
def test_a_full_disk_stops_and_loses_nothing(plan: Plan, monkeypatch: pytest.MonkeyPatch, writer: str) -> None:
    place, job = plan.folder.store, plan.jobs[0]
    shutil.rmtree(place.job(job.fingerprint))

    def full(*arguments: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(f"longshift.training.{writer}", full)
        outcome = execute(job, place, Runtime(device="cpu", keep_model=True), TASKS)
    assert outcome.kind == "full"
    assert "the disk is full" in outcome.message
    assert _states(plan) == ["waiting", "done"]  # neither finished nor failed
    assert execute(job, place, RUNTIME, TASKS) == Outcome("done")


def test_an_error_that_a_method_handled_does_not_stop_the_sweep(plan: Plan) -> None:
    def of_a_method() -> None:
        try:
            raise PermissionError(errno.EACCES, "no access to an optional file")
        except PermissionError:
            raise ValueError("another mistake")  # noqa: B904

    with pytest.raises(ValueError, match="another mistake") as handled:
        of_a_method()
    assert not not_to_blame(handled.value)
    stated = LongshiftError("cannot write")
    stated.__cause__ = PermissionError(errno.EACCES, "no access")
    assert not_to_blame(stated)
    job = plan.jobs[0]
    assert _trouble(DataChanged("it changed"), job, plan.folder.store) == Outcome("changed", "it changed")
    assert not plan.folder.store.failure(job.fingerprint).exists()


def test_only_a_full_disk_looks_like_one(tmp_path: Path) -> None:
    assert disk_full(OSError(errno.ENOSPC, "x"), tmp_path)
    wrapped = LongshiftError("cannot write")
    wrapped.__cause__ = OSError(errno.EDQUOT, "quota")
    assert disk_full(wrapped, tmp_path)
    assert disk_full(RuntimeError("I/O error: No space left on device (os error 28)"), tmp_path)
    assert not disk_full(RuntimeError("PytorchStreamWriter failed writing file"), tmp_path)  # there is room
    assert not disk_full(OSError(errno.EACCES, "denied"), tmp_path)


def test_a_plan_of_another_version_is_refused(plan: Plan) -> None:
    job = plan.jobs[0]
    other = Job("f" * 64, job.dataset, job.method, job.trial, job.draw, job.run)
    outcome = execute(other, plan.folder.store, RUNTIME, TASKS)
    assert outcome.kind == "failed"
    assert "another version" in outcome.message


def test_the_cache_gives_the_task_that_make_task_gives(plan: Plan) -> None:
    from longshift.training.task import make_task

    tasks = TaskCache(most=1)
    for job in (plan.jobs[0], plan.jobs[1], plan.jobs[0]):
        config = job.config
        kept, fresh = tasks.get(config), make_task(config)
        assert kept.split.fingerprint == fresh.split.fingerprint
        assert kept.store.fingerprint == fresh.store.fingerprint
        assert tasks.get(config) is kept


def test_a_column_whose_formula_changed_is_read_again(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    restore_registries(monkeypatch)
    fingerprints = [job.fingerprint for job in plan.jobs]

    def values(formula: str, file: str = "plugin.py") -> list[float]:
        path = tmp_path / file
        path.write_text(
            "from longshift.results import register_column\n"
            f"def formula(result):\n    return {formula}\n"
            'register_column("score", "number", "a score", lambda result: formula(result))\n'
        )
        exec(compile(path.read_text(), path, "exec"), {})
        entries = store.scan_jobs(plan.folder.store, fingerprints)
        return [json.loads(entries[fingerprint].line)["score"] for fingerprint in fingerprints]

    assert values("1.0") == [1.0, 1.0]
    assert values("2.0") == [2.0, 2.0]
    # A formula that did not change is not read again, even from another process or folder.
    monkeypatch.setattr(store, "read_summary", None)
    assert values("2.0", "copy.py") == [2.0, 2.0]

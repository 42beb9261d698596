"""One job in this process: errors of methods, stops, full disks, changed data, links."""

from __future__ import annotations

import errno
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from longshift.data import DataChanged
from longshift.errors import LongshiftError
from longshift.sweep import Job, Plan, clear_failures, execute, make_queue, read_failure, read_row
from longshift.sweep.state import Outcome, state_of
from longshift.sweep.worker import is_machine_error
from longshift.training import TaskCache
from tests.sweep.small import RUNTIME, run_here, small_plan

TASKS = TaskCache()


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    """A sweep of two finished jobs; tests work on copies."""
    plan = small_plan(tmp_path_factory.mktemp("sweep") / "s", draws=1)
    run_here(plan)
    return plan


@pytest.fixture
def plan(finished: Plan, tmp_path: Path) -> Plan:
    """The first of two jobs is not run yet."""
    shutil.copytree(finished.folder.path, tmp_path / "s")
    made = small_plan(tmp_path / "s", draws=1)
    shutil.rmtree(made.folder.store.job(made.jobs[0].fingerprint))
    return made


def test_a_finished_job_is_not_run_again(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longshift.sweep.worker.Trainer", None)
    assert execute(plan.jobs[1], plan.folder.store, RUNTIME, TASKS).kind == "done"


def test_what_a_method_raises_is_kept_until_it_is_cleared(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    store, job = plan.folder.store, plan.jobs[0]

    def explode(*arguments: Any) -> None:
        raise RuntimeError("wrong")

    with monkeypatch.context() as patch:
        patch.setattr("longshift.methods.erm.ERM.loss", explode)
        outcome = execute(job, store, RUNTIME, TASKS)
    assert outcome == Outcome("failed", "RuntimeError: wrong")
    assert "in explode" in json.loads(store.failure(job.fingerprint).read_text())["traceback"]
    assert read_failure(store, job.fingerprint) == "RuntimeError: wrong"
    assert execute(job, store, RUNTIME, TASKS).kind == "failed"
    assert clear_failures(store, [j.fingerprint for j in plan.jobs]) == 1
    assert execute(job, store, RUNTIME, TASKS) == Outcome("done")


@pytest.mark.slow
@pytest.mark.parametrize("damaged", [False, True])
def test_a_stopped_job_resumes_with_the_same_numbers(plan: Plan, finished: Plan, damaged: bool) -> None:
    store, job = plan.folder.store, plan.jobs[0]
    asked = iter([False, True])
    outcome = execute(job, store, RUNTIME, TASKS, lambda: next(asked))
    assert outcome.kind == "stopped"
    folder = store.job(job.fingerprint)
    if damaged:  # by a power cut: the job starts again
        (folder / "resume.pt").write_bytes((folder / "resume.pt").read_bytes()[:1000])
    assert execute(job, store, RUNTIME, TASKS) == Outcome("done")
    expected = read_row(finished.folder.store.job(job.fingerprint), job.fingerprint)
    found = read_row(folder, job.fingerprint)
    assert {k: v for k, v in found.items() if "seconds" not in k} == {
        k: v for k, v in expected.items() if "seconds" not in k
    }


def test_an_error_on_a_full_disk_is_that_of_the_disk(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    """Libraries that write with their own code raise anything."""

    def broken(*arguments: Any) -> None:
        raise RuntimeError("PytorchStreamWriter failed writing file")

    monkeypatch.setattr("longshift.sweep.worker.Trainer", broken)
    monkeypatch.setattr("longshift.sweep.worker.shutil.disk_usage", lambda path: shutil._ntuple_diskusage(9, 9, 0))
    assert execute(plan.jobs[0], plan.folder.store, RUNTIME, TASKS).kind == "blocked"
    assert state_of(plan.folder.store, plan.jobs[0].fingerprint) == "waiting"


def test_only_stated_causes_are_errors_of_the_machine() -> None:
    def of_a_method() -> None:
        try:
            raise PermissionError(errno.EACCES, "no access to an optional file")
        except PermissionError:
            raise ValueError("another mistake")  # noqa: B904

    with pytest.raises(ValueError, match="another mistake") as handled:
        of_a_method()
    assert not is_machine_error(handled.value)
    stated = LongshiftError("cannot write")
    stated.__cause__ = PermissionError(errno.EACCES, "no access")
    assert is_machine_error(stated)


def test_changed_data_and_other_versions(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    job, store = plan.jobs[0], plan.folder.store
    other = Job("f" * 64, job.dataset, job.method, job.trial, job.draw, job.run)
    assert execute(other, store, RUNTIME, TASKS).kind == "failed"

    def changed(*arguments: Any) -> None:
        raise DataChanged("it changed")

    monkeypatch.setattr("longshift.sweep.worker.Trainer", changed)
    assert execute(job, store, RUNTIME, TASKS) == Outcome("blocked", "it changed")
    assert state_of(store, job.fingerprint) == "waiting"


@pytest.mark.parametrize("link", ["jobs", "job", "tensorboard", "mlflow.db"])
def test_a_link_out_of_the_store_is_not_followed(tmp_path: Path, link: str) -> None:
    plan, mine = small_plan(tmp_path / "s"), tmp_path / "mine"
    mine.mkdir()
    store, job = plan.folder.store, plan.jobs[0]
    folder = store.job(job.fingerprint)
    place = {"jobs": store.jobs, "job": folder, "tensorboard": folder / link, "mlflow.db": store.path / link}[link]
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(mine / link if link == "mlflow.db" else mine)
    track: Any = {"tensorboard": "tensorboard", "mlflow.db": "mlflow"}.get(link)
    outcome = execute(job, store, RUNTIME, TASKS, track=track)
    assert outcome.kind in ("blocked", "failed")
    assert str(place) in outcome.message
    assert not list(mine.iterdir())
    if link == "jobs":
        with pytest.raises(LongshiftError, match=str(place)):
            make_queue(plan)

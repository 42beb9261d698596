"""The jobs of one `sweep run`, and what is told of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from longshift.paper import reproducing
from longshift.sweep import Outcome, Slot, launch, make_queue
from longshift.sweep.launch import CancelWatch, ask_to_cancel
from longshift.training import Runtime
from tests.sweep.small import small_plan


def test_one_after_another_one_is_always_running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, told = small_plan(tmp_path / "s"), list[tuple[int, str]]()
    monkeypatch.setattr(reproducing, "execute", lambda *_: Outcome("done"))

    def tick(done: int = 1, note: str = "") -> None:
        told.append((done, note))

    reproducing.run_jobs(plan.folder.store, plan.jobs, [Slot("cpu", 1)], Runtime(), lambda: False, tick)
    assert told == [(0, "1 running"), *[(1, "1 running")] * 3, (1, "0 running")]


def test_a_queue_tells_only_what_has_changed(tmp_path: Path) -> None:
    told: list[str] = []
    job_queue = make_queue(small_plan(tmp_path / "s"))
    job_queue.listener = lambda job_queue: told.append(job_queue.note())
    assert len(job_queue.waiting) == job_queue.total == job_queue.left == 4
    job_queue.tell()
    job_queue.tell()
    job, second = job_queue.next_job(), job_queue.next_job()
    assert job is not None
    assert second is not None
    job_queue.tell()
    job_queue.finish(job, Outcome("failed"))
    job_queue.tell()
    assert [text.split()[0] for text in told] == ["0", "2", "1"]
    job_queue.finish(second, Outcome("stopped"))
    assert job_queue.waiting[0] == second


def test_a_job_that_runs_elsewhere_is_looked_at_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "POLL_SECONDS", 0.0)
    job_queue = make_queue(small_plan(tmp_path / "s", draws=1, targets=["ink"]))
    job = job_queue.next_job()
    assert job is not None
    job_queue.finish(job, Outcome("busy"))
    monkeypatch.setattr(launch, "state_of", lambda *_: "running")
    assert job_queue.next_job() is None
    assert job_queue.open
    monkeypatch.setattr(launch, "state_of", lambda *_: "done")
    assert job_queue.next_job() is None
    assert (job_queue.done, job_queue.open) == (1, False)


def test_a_job_that_somebody_else_finished_is_not_counted_as_ours(tmp_path: Path) -> None:
    job_queue = make_queue(small_plan(tmp_path / "s", draws=1))
    for message in ("", "it was done before"):
        job = job_queue.next_job()
        assert job is not None
        job_queue.finish(job, Outcome("done", message))
    assert (job_queue.done, job_queue.finished_here) == (2, 1)


def test_cancel_reaches_running_commands_and_no_later_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "POLL_SECONDS", -1.0)
    folder = small_plan(tmp_path).folder
    running = CancelWatch(folder.cancel)
    assert not running()
    ask_to_cancel(folder)
    assert running()
    assert not CancelWatch(folder.cancel)()

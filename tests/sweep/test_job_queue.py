"""What is told of a sweep while it runs."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from longshift.paper import reproducing as running
from longshift.sweep.job_queue import make_queue
from longshift.sweep.job_store import Outcome
from longshift.sweep.local_launcher import Pool, Slot, Worker
from longshift.training.run_config import Runtime
from tests.sweep.small import small_plan


class Told:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.lines: list[tuple[int, str]] = []

    def __call__(self, done: int = 1, note: str = "") -> None:
        self.lines.append((done, note))


def test_one_after_another_one_is_always_running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, told = small_plan(tmp_path / "s"), Told()
    monkeypatch.setattr(running, "execute", lambda *_: Outcome("done"))
    running.run_jobs(plan.folder.store, plan.jobs, [Slot("cpu", 1)], Runtime(), lambda: False, told)
    assert told.lines == [(0, "1 running"), *[(1, "1 running")] * 3, (1, "0 running")]


def test_two_at_a_time_both_are_running_until_no_job_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of workers that are not there: each turn, one of the two jobs is done."""
    plan, told = small_plan(tmp_path / "s"), Told()

    def start(pool: Pool, slot: Slot) -> None:
        pool.workers.append(Worker(slot, Mock(), Mock(), ready=True))

    def receive(pool: Pool) -> list[Slot]:
        worker = next((w for w in pool.workers if w.job is not None), None)
        if worker is None:
            pool.workers.clear()
        else:
            pool._hear(worker, Outcome("done"))
        return []

    monkeypatch.setattr(Pool, "start", start)
    monkeypatch.setattr(Pool, "receive", receive)
    monkeypatch.setattr("longshift.sweep.local_launcher.wait", lambda *_, **__: [])
    monkeypatch.setattr("longshift.sweep.local_launcher._tell", lambda *_: None)
    running.run_jobs(plan.folder.store, plan.jobs, [Slot("cpu", 1)] * 2, Runtime(), lambda: False, told)
    assert told.lines == [(0, "2 running"), *[(1, "2 running")] * 2, (1, "1 running"), (1, "0 running")]


def test_changed_data_leave_out_the_jobs_of_their_dataset_only(tmp_path: Path) -> None:
    job_queue = make_queue(small_plan(tmp_path / "s"))
    jobs = [replace(job, dataset="one" if i % 2 else "two") for i, job in enumerate(job_queue.waiting)]
    job_queue.waiting = deque(jobs)
    first = job_queue.next_job()
    assert first is not None
    job_queue.finish(first, Outcome("changed", "the data have changed."))
    ran = []
    while (job := job_queue.next_job()) is not None:
        ran.append(job)
        job_queue.finish(job, Outcome("done"))
    assert ran == [job for job in jobs if job.dataset == "one"]
    assert (job_queue.open, job_queue.trouble, job_queue.failed) == (False, "", 0)
    assert job_queue.problem == "2 jobs on two not run: the data have changed."


def test_a_board_tells_only_what_has_changed(tmp_path: Path) -> None:
    told: list[str] = []
    job_queue = make_queue(small_plan(tmp_path / "s"), lambda job_queue: told.append(job_queue.note()))
    job_queue.tell()
    job_queue.tell()
    job = job_queue.next_job()
    assert job is not None
    job_queue.tell()
    job_queue.finish(job, Outcome("failed"))
    job_queue.tell()
    assert told == ["0 running", "1 running", "0 running, 1 failed"]

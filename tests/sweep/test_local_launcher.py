"""The local launcher with real processes: kills, stops, two commands at once, a full disk."""

from __future__ import annotations

import functools
import json
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from longshift.registry import use_plugin
from longshift.sweep import local_launcher as local
from longshift.sweep.job_queue import JobQueue, make_queue
from longshift.sweep.job_store import Outcome
from longshift.sweep.jobs import make_plan
from longshift.sweep.local_launcher import Slot, make_slots, run_local
from longshift.training import load_resume
from tests.commands import Command, wait_for
from tests.faults.tools import full_disk_at_write, outcome
from tests.registries import restore_registries
from tests.sweep.small import RUNTIME, run_here, small_plan, table_bytes, write_sweep

TWO = [Slot("cpu", 1)] * 2
SMALL = {"batch_size": 4}
EIGHT: dict[str, Any] = {
    "methods": ["erm", "ndcl"],
    "run": {"steps": 6, "eval_every": 3, "evaluate": "full", "hparams": SMALL},
}
LONG: dict[str, Any] = {
    "targets": ["ink"],
    "draws": 1,
    "run": {"steps": 9000, "eval_every": 9000, "hparams": SMALL},
}
pytestmark = pytest.mark.slow


def words(folder: Path, *arguments: str) -> list[str]:
    return ["sweep", "run", str(folder), "--device", "cpu", "--json", *arguments]


def start(folder: Path, *arguments: str) -> Command:
    return Command(*words(folder, *arguments))


def results(folder: Path) -> dict[str, tuple[int, bytes]]:
    found = {}
    for path in folder.glob("jobs/*/result.json"):
        found[path.parent.name] = (path.stat().st_mtime_ns, path.read_bytes())
    return found


def kill_in_the_middle(folder: Path, known: int, group: bool, delay: float) -> None:
    """Start the sweep, let it finish a job more than the known ones, and kill it a little later."""
    process = start(folder, "--workers", "1" if group else "2")
    wait_for(lambda: len(results(folder)) > known or process.poll() is not None)
    time.sleep(delay)
    if group:
        # A worker left over from an earlier kill may have finished that job before this process had its own group.
        wait_for(lambda: process.poll() is not None or os.getpgid(process.pid) == process.pid)
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()  # the workers are left alone: they must notice and stop
    process.communicate()


def test_killed_twice_it_ends_with_the_same_table(tmp_path: Path) -> None:
    run_here(small_plan(tmp_path / "calm", **EIGHT))
    folder = write_sweep(tmp_path / "killed", **EIGHT)
    rng = random.Random(5)
    seen: dict[str, tuple[int, bytes]] = {}
    for group in (False, True):
        kill_in_the_middle(folder, len(seen), group, rng.random() / 4)
        seen = {**results(folder), **seen}
    assert seen
    plan = make_plan(folder)[1]
    job_queue = make_queue(plan)
    run_local(job_queue, TWO, RUNTIME)
    assert (job_queue.done, job_queue.failed) == (8, 0)
    assert {name: value for name, value in results(folder).items() if name in seen} == seen
    assert table_bytes(folder) == table_bytes(tmp_path / "calm")


def test_two_commands_share_the_work(tmp_path: Path) -> None:
    folder = write_sweep(tmp_path / "s", draws=4, run={"steps": 3, "eval_every": 3, "hparams": SMALL})
    pair = [start(folder, "--workers", "1") for _ in range(2)]
    ends = [process.communicate(timeout=200) for process in pair]
    assert [process.returncode for process in pair] == [0, 0], ends
    values = [json.loads(out) for out, _ in ends]
    assert [value["done"] for value in values] == [8, 8]
    assert sum(value["here"] for value in values) == 8  # no job was run by both


def test_ctrl_c_stops_cleanly_and_cancel_reaches_every_command(tmp_path: Path) -> None:
    folder = write_sweep(tmp_path / "s", **LONG)
    process = start(folder, "--workers", "1")
    wait_for(lambda: list(folder.glob("jobs/*/resume.pt")))
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the workers as well
    _, text = process.communicate(timeout=60)
    assert process.returncode == 130, text
    assert "1 of 1 job remaining" in text
    (resume,) = folder.glob("jobs/*/resume.pt")
    reached = _step(resume)
    process = start(folder, "--workers", "1")
    wait_for(lambda: _step(resume) > reached)
    cancel = Command("sweep", "cancel", folder)
    cancel.communicate()
    assert cancel.returncode == 0
    _, text = process.communicate(timeout=60)
    assert process.returncode == 130, text


def test_a_time_limit_stops_it_cleanly(tmp_path: Path) -> None:
    folder = write_sweep(tmp_path / "s", **LONG)
    process = start(folder, "--workers", "1", "--stop-after", "0.05")
    _, text = process.communicate(timeout=120)
    assert process.returncode == 130, text
    assert "1 of 1 job remaining" in text
    # A slow machine may not have come to the first step; where it has, it was saved.
    assert all(0 < _step(path) < 9000 for path in folder.glob("jobs/*/resume.pt"))


def test_a_scheduler_that_ends_the_whole_group_stops_it_cleanly(tmp_path: Path) -> None:
    folder = write_sweep(tmp_path / "s", **LONG)
    process = start(folder, "--workers", "1")
    wait_for(lambda: list(folder.glob("jobs/*/resume.pt")))
    process.send_signal(signal.SIGTERM)  # as `timeout` does: to the command, then to its group
    time.sleep(0.1)
    os.killpg(process.pid, signal.SIGTERM)
    _, text = process.communicate(timeout=60)
    assert process.returncode == 130, text
    assert "1 of 1 job remaining" in text
    assert "killed by signal" not in text  # the workers were not ended: they saved and left


def _step(path: Path) -> int:
    state = load_resume(path, torch.device("cpu"))
    return int(state["progress"]["step"])


def test_a_killed_worker_is_replaced_and_its_job_goes_on(tmp_path: Path) -> None:
    changes: dict[str, Any] = {"draws": 1, "run": {"steps": 40, "eval_every": 40, "hparams": SMALL}}
    run_here(small_plan(tmp_path / "calm", **changes))
    plan = small_plan(tmp_path / "s", **changes)
    killed: list[int] = []

    def kill_one() -> bool:
        for claim in plan.folder.store.claims.glob("*"):
            text = claim.read_text() if claim.exists() else ""
            resume = plan.folder.store.jobs / claim.name / "resume.pt"
            if text and not killed and resume.exists():
                killed.append(json.loads(text)["pid"])
                os.kill(killed[0], signal.SIGKILL)
        return False

    job_queue = make_queue(plan)
    run_local(job_queue, TWO[:1], RUNTIME, kill_one)
    assert len(killed) == 1
    assert list(job_queue.deaths.values()) == [1]
    assert (job_queue.done, job_queue.failed) == (2, 0)
    assert table_bytes(tmp_path / "s") == table_bytes(tmp_path / "calm")


def test_a_job_that_kills_its_workers_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A method of the user's that ends the process, as running out of memory does."""
    plugin = tmp_path / "deadly.py"
    plugin.write_text(
        "import os, signal\n"
        "from longshift.methods.erm import ERM\n"
        "from longshift.methods.registry import register\n"
        '@register("deadly", title="Deadly", family="dg", paper="none", idea="ends its process")\n'
        "class Deadly(ERM):\n"
        "    def loss(self, batch):\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    restore_registries(monkeypatch)
    use_plugin(plugin)
    plan = small_plan(tmp_path / "s", draws=1, targets=["ink"], methods=["deadly"])
    job_queue = make_queue(plan)
    run_local(job_queue, TWO[:1], RUNTIME)
    assert (job_queue.done, job_queue.failed) == (0, 1)
    failure = json.loads(plan.folder.store.failure(plan.jobs[0].fingerprint).read_text())
    assert failure["error"].startswith(f"its worker died {local.MOST_DEATHS} times, the last time: killed by signal 9")


def test_workers_that_cannot_start_end_the_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from longshift.errors import LongshiftError

    monkeypatch.setattr(local, "work", _stillborn)
    job_queue = make_queue(small_plan(tmp_path / "s"))
    with pytest.raises(LongshiftError, match="3 workers in a row could not start"):
        run_local(job_queue, TWO, RUNTIME)
    assert job_queue.failed == 0


def _stillborn(*arguments: object) -> None:
    sys.exit(3)


def test_a_full_disk_fails_no_job_and_loses_nothing(tmp_path: Path) -> None:
    changes: dict[str, Any] = {"targets": ["ink"], "run": {"steps": 6, "eval_every": 2, "hparams": SMALL}}
    folder = write_sweep(tmp_path / "s", **changes)
    process = Command(*words(folder, "--workers", "1"), around=functools.partial(full_disk_at_write, "result.json", 2))
    _, said = process.communicate()
    assert process.returncode == 1, said
    assert "disk is full" in said
    assert not list(folder.glob("jobs/*/failure.json"))
    kept = results(folder)
    assert len(kept) == 1
    assert outcome(*words(folder, "--workers", "1")) is None
    assert {name: value for name, value in results(folder).items() if name in kept} == kept
    run_here(small_plan(tmp_path / "calm", **changes))
    assert table_bytes(folder) == table_bytes(tmp_path / "calm")


def test_slots_respect_the_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longshift.sweep.local_launcher.cores", lambda: 8)
    assert make_slots("cpu") == [Slot("cpu", 1)] * 8
    assert make_slots("cpu", threads=3) == [Slot("cpu", 3)] * 2
    assert make_slots("cpu", workers=5) == [Slot("cpu", 1)] * 5
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert make_slots("auto", jobs_per_gpu=2) == [Slot(f"cuda:{i}", 2) for i in (0, 1, 0, 1)]
    assert make_slots("cuda:1", jobs_per_gpu=3) == [Slot("cuda:1", 2)] * 3


def test_the_board_says_what_is_left(tmp_path: Path) -> None:
    plan = small_plan(tmp_path / "s")
    job_queue: JobQueue = make_queue(plan)
    assert len(job_queue.waiting) == job_queue.total == 4
    job = job_queue.next_job()
    assert job is not None
    assert job_queue.note() == "1 running"
    job_queue.finish(job, Outcome("done"))
    assert job_queue.note() == "0 running"
    second = job_queue.next_job()
    assert second is not None
    job_queue.finish(second, Outcome("stopped"))
    assert job_queue.waiting[0] == second

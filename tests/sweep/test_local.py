"""Real processes on one folder: kills, stops, two machines at once, a full disk."""

from __future__ import annotations

import functools
import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from longshift import io
from longshift.errors import LongshiftError
from longshift.registry import use_plugin
from longshift.sweep import local, state
from longshift.sweep.launch import make_queue
from longshift.sweep.local import Slot, make_slots, run_local
from longshift.sweep.state import LEASE
from tests.commands import Command, wait_for
from tests.faults.tools import full_disk_at_write, killed_at_write, outcome
from tests.registries import restore_registries
from tests.sweep.small import RUNTIME, run_here, small_plan, table_bytes, write_sweep

ONE = [Slot("cpu", 1)]
SMALL = {"batch_size": 4}
FOUR: dict[str, Any] = {"run": {"steps": 6, "eval_every": 3, "evaluate": "full", "hparams": SMALL}}
LONG: dict[str, Any] = {
    "targets": ["ink"],
    "draws": 1,
    "run": {"steps": 9000, "eval_every": 9000, "hparams": SMALL},
}
pytestmark = pytest.mark.slow


def words(folder: Path, *arguments: str) -> list[str]:
    return ["sweep", "run", str(folder), "--device", "cpu", "--json", "--workers", "1", *arguments]


def results(folder: Path) -> dict[str, bytes]:
    return {path.parent.name: path.read_bytes() for path in folder.glob("jobs/*/result.json")}


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The table of four jobs that nothing disturbed."""
    folder = tmp_path_factory.mktemp("calm") / "s"
    run_here(small_plan(folder, **FOUR))
    return table_bytes(folder)


@contextmanager
def as_machine(name: str) -> Iterator[None]:
    """For a `Command`: a machine with a name, whose locks no other machine sees."""
    lock = io.try_lock
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state, "_machine", lambda: name)
        patch.setattr(io, "try_lock", lambda path, *rest: lock(path.with_name(f"{path.name}-{name}"), *rest))
        yield


@contextmanager
def killed_machine(name: str) -> Iterator[None]:
    """A machine that loses power while it finishes its second job."""
    with as_machine(name), killed_at_write("result.json", 2):
        yield


def test_two_machines_share_the_work(tmp_path: Path, calm: bytes) -> None:
    folder = write_sweep(tmp_path / "s", **FOUR)
    pair = [Command(*words(folder), around=functools.partial(as_machine, name)) for name in ("a", "b")]
    ends = [process.communicate() for process in pair]
    assert [process.returncode for process in pair] == [0, 0], ends
    values = [json.loads(out) for out, _ in ends]
    assert [value["done"] for value in values] == [4, 4]
    assert sum(value["here"] for value in values) == 4  # no job was run by both
    assert table_bytes(folder) == calm


def test_a_machine_takes_over_from_one_that_was_lost(tmp_path: Path, calm: bytes) -> None:
    folder = write_sweep(tmp_path / "s", **FOUR)
    lost = Command(*words(folder), around=functools.partial(killed_machine, "a"))
    lost.communicate()
    assert lost.returncode == -signal.SIGKILL
    kept = results(folder)
    (lease,) = folder.glob(f"jobs/*/{LEASE}")
    lease.touch()
    other = Command(*words(folder), around=functools.partial(as_machine, "b"))
    wait_for(lambda: len(results(folder)) == 3)
    assert not (lease.parent / "result.json").exists()  # as long as the lease is fresh
    os.utime(lease, (1, 1))
    said = other.communicate()
    assert other.returncode == 0, said
    assert json.loads(said[0])["here"] == 3
    assert results(folder).items() >= kept.items()
    assert table_bytes(folder) == calm


def test_workers_stop_when_their_command_is_killed(tmp_path: Path, calm: bytes) -> None:
    folder = write_sweep(tmp_path / "s", **FOUR)
    process = Command(*words(folder))
    wait_for(lambda: results(folder) or process.poll() is not None)
    process.kill()
    process.communicate()
    wait_for(lambda: not list(folder.glob(f"jobs/*/{LEASE}")))
    kept = results(folder)
    assert outcome(*words(folder)) is None
    assert results(folder).items() >= kept.items()
    assert table_bytes(folder) == calm


@pytest.mark.parametrize("how", ["ctrl-c", "cancel", "scheduler"])
def test_a_stop_saves_everything(tmp_path: Path, how: str) -> None:
    folder = write_sweep(tmp_path / "s", **LONG)
    process = Command(*words(folder))
    wait_for(lambda: list(folder.glob("jobs/*/resume.pt")))
    if how == "ctrl-c":
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the workers as well
    elif how == "cancel":
        assert outcome("sweep", "cancel", str(folder)) is None
    else:
        process.send_signal(signal.SIGTERM)  # as `timeout` does: to the command, then to its group
        os.killpg(process.pid, signal.SIGTERM)
    out, text = process.communicate()
    assert process.returncode == 130, text
    assert json.loads(out)["done"] == 0
    assert list(folder.glob("jobs/*/resume.pt"))
    assert not list(folder.glob(f"jobs/*/{LEASE}"))
    assert "signal" not in text  # the workers were not ended: they saved and left


def test_a_time_limit_stops_it_cleanly(tmp_path: Path) -> None:
    stopped = outcome(*words(write_sweep(tmp_path / "s", **LONG), "--stop-after", "0"))
    assert stopped is not None
    assert stopped.exit_code == 130


@pytest.mark.parametrize("deaths", [1, local.MOST_DEATHS])
def test_a_dead_worker_is_replaced_unless_its_job_is_to_blame(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deaths: int
) -> None:
    """A method of the user's that ends the process, as running out of memory does."""
    plugin = tmp_path / "deadly.py"
    plugin.write_text(
        "import os, signal\n"
        "from pathlib import Path\n"
        "from longshift.methods.erm import ERM\n"
        "from longshift.methods.registry import register\n"
        '@register("deadly", title="Deadly", family="dg", paper="none", idea="ends its process")\n'
        "class Deadly(ERM):\n"
        "    def loss(self, batch):\n"
        "        with Path(__file__).with_name('deaths').open('a') as file:\n"
        "            file.write('x')\n"
        f"        if Path(__file__).with_name('deaths').stat().st_size <= {deaths}:\n"
        "            os.kill(os.getpid(), signal.SIGKILL)\n"
        "        return super().loss(batch)\n"
    )
    restore_registries(monkeypatch)
    use_plugin(plugin)
    plan = small_plan(tmp_path / "s", draws=1, targets=["ink"], methods=["deadly"])
    job_queue = make_queue(plan)
    run_local(job_queue, ONE, RUNTIME)
    assert job_queue.deaths.total() == deaths
    assert (job_queue.done, job_queue.failed) == ((1, 0) if deaths == 1 else (0, 1))
    assert plan.folder.store.failure(plan.jobs[0].fingerprint).exists() == (deaths > 1)


def test_workers_that_cannot_start_end_the_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "work", _exit)
    job_queue = make_queue(small_plan(tmp_path / "s"))
    with pytest.raises(LongshiftError, match="exit code 3"):
        run_local(job_queue, ONE, RUNTIME)
    assert job_queue.failed == 0


def _exit(*arguments: object) -> None:
    sys.exit(3)


def test_a_full_disk_fails_no_job_and_loses_nothing(tmp_path: Path, calm: bytes) -> None:
    folder = write_sweep(tmp_path / "s", **FOUR)
    process = Command(*words(folder), around=functools.partial(full_disk_at_write, "result.json", 2))
    _, said = process.communicate()
    assert process.returncode == 1, said
    assert not list(folder.glob("jobs/*/failure.json"))
    kept = results(folder)
    assert len(kept) == 1
    assert outcome(*words(folder)) is None
    assert results(folder).items() >= kept.items()
    assert table_bytes(folder) == calm


def test_slots_respect_the_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longshift.sweep.local.cores", lambda: 8)
    assert make_slots("cpu") == [Slot("cpu", 1)] * 8
    assert make_slots("cpu", threads=3) == [Slot("cpu", 3)] * 2
    assert make_slots("cpu", workers=5) == [Slot("cpu", 1)] * 5
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert make_slots("auto", jobs_per_gpu=2) == [Slot(f"cuda:{i}", 2) for i in (0, 1, 0, 1)]
    assert make_slots("cuda:1", jobs_per_gpu=3) == [Slot("cuda:1", 2)] * 3

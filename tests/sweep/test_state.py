"""The folder of a run is its state: leases, failures, results, and the cache that keeps their rows."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from longshift.errors import LongshiftError
from longshift.io import FolderInUse
from longshift.sweep import BadResult, Plan, hold_lease, load_plan, read_states, state
from longshift.sweep.state import LEASE, LEASE_SECONDS, state_of, write_failure
from longshift.sweep.sweep_folder import read_cache
from tests.commands import wait_for
from tests.registries import restore_registries
from tests.sweep.small import run_here, small_plan

HOLD = """
import sys
from pathlib import Path
from longshift.sweep import hold_lease
with hold_lease(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def age(path: Path, seconds: float) -> None:
    """Set the time stamp of a file."""
    os.utime(path, (time.time() - seconds, time.time() - seconds))


def test_a_lease_is_exclusive_and_given_back(tmp_path: Path) -> None:
    folder = tmp_path / "jobs" / "a"
    with hold_lease(folder) as lost:
        assert (folder / LEASE).exists()
        with pytest.raises(FolderInUse), hold_lease(folder):
            pass
        assert not lost()
    assert not (folder / LEASE).exists()
    with hold_lease(folder):
        pass


def test_a_killed_holder_loses_its_lease_at_once_on_its_own_machine(tmp_path: Path) -> None:
    words = [sys.executable, "-c", HOLD, str(tmp_path / "a")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        with pytest.raises(FolderInUse), hold_lease(tmp_path / "a"):
            pass
        process.kill()
    assert (tmp_path / "a" / LEASE).exists()
    with hold_lease(tmp_path / "a"):
        pass


@pytest.mark.parametrize(
    ("seconds", "held"), [(LEASE_SECONDS / 2, True), (LEASE_SECONDS * 2, False), (-LEASE_SECONDS * 2, False)]
)
def test_the_lease_of_another_machine_holds_while_it_is_renewed(tmp_path: Path, seconds: float, held: bool) -> None:
    """Its lock does not reach this machine: only the time stamp speaks. A clock may be wrong."""
    plan = small_plan(tmp_path)
    store, name = plan.folder.store, plan.jobs[0].fingerprint
    folder = store.job(name)
    folder.mkdir(parents=True)
    (folder / LEASE).write_text("elsewhere/1 abc")
    (folder / ".resume.pt.1.part").write_text("being written there")
    age(folder / LEASE, seconds)
    assert read_states(plan)[name].state == state_of(store, name) == ("running" if held else "waiting")
    if held:
        with pytest.raises(FolderInUse), hold_lease(folder):
            pass
        assert (folder / ".resume.pt.1.part").exists()
    else:
        with hold_lease(folder):
            pass


def test_a_lease_is_renewed_and_its_loss_is_noticed(tmp_path: Path) -> None:
    with hold_lease(tmp_path, seconds=0.1) as lost:
        age(tmp_path / LEASE, 1000)
        wait_for(lambda: time.time() - (tmp_path / LEASE).stat().st_mtime < 900)
        (tmp_path / LEASE).write_text("elsewhere/1 abc")
        wait_for(lost)
    assert (tmp_path / LEASE).read_text() == "elsewhere/1 abc"


def test_a_link_in_place_of_a_lease_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / LEASE).symlink_to(tmp_path / "mine.txt")
    os.utime(tmp_path / "a" / LEASE, (1, 1), follow_symlinks=False)
    with hold_lease(tmp_path / "a"):
        pass
    assert (tmp_path / "mine.txt").read_text() == "mine"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    """A sweep of two finished jobs; tests work on copies."""
    plan = small_plan(tmp_path_factory.mktemp("sweep") / "s", draws=1)
    run_here(plan)
    return plan


@pytest.fixture
def plan(finished: Plan, tmp_path: Path) -> Plan:
    shutil.copytree(finished.folder.path, tmp_path / "s")
    return small_plan(tmp_path / "s", draws=1)


def states(folder: Path) -> list[str]:
    plan = load_plan(folder)
    return [read_states(plan)[job.fingerprint].state for job in plan.jobs]


def test_states_follow_the_folders(plan: Plan) -> None:
    folder, store, first = plan.folder.path, plan.folder.store, plan.jobs[0].fingerprint
    assert states(folder) == ["done", "done"]
    shutil.rmtree(store.job(first))
    assert states(folder) == ["waiting", "done"]
    with hold_lease(store.job(first)):
        assert states(folder) == ["running", "done"]
    write_failure(store, first, "two are wrong:\n- one\n- another\nShrink.")
    assert states(folder) == ["failed", "done"]
    assert state.read_failure(store, first) == "two are wrong: Shrink."


def test_each_result_is_read_once(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {name: found.row() for name, found in read_states(plan).items()}
    with monkeypatch.context() as patch:
        patch.setattr(state, "read_row", None)
        assert {name: found.row() for name, found in read_states(load_plan(plan.folder.path)).items()} == rows
    plan.folder.cache.write_bytes(b"rubbish")
    assert {name: found.row() for name, found in read_states(load_plan(plan.folder.path)).items()} == rows
    assert len(read_cache(plan.folder).rows) == 2


@pytest.mark.parametrize("how", ["half", "another run", "schema"])
def test_a_result_that_cannot_be_used_is_named(plan: Plan, how: str) -> None:
    path = plan.folder.store.job(plan.jobs[0].fingerprint) / "result.json"
    value = json.loads(path.read_text())
    changed = {**value, "schema": 99} if how == "schema" else {**value, "fingerprint": "0" * 64}
    path.write_text(path.read_text()[:99] if how == "half" else json.dumps(changed))
    with pytest.raises(BadResult, match=str(path)):
        states(plan.folder.path)


def test_a_column_whose_formula_changed_is_read_again(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    restore_registries(monkeypatch)

    def values(formula: str, file: str = "plugin.py") -> list[float]:
        path = tmp_path / file
        path.write_text(
            "from longshift.sweep import register_column\n"
            f"def formula(result):\n    return {formula}\n"
            'register_column("score", "number", "a score", lambda result: formula(result))\n'
        )
        exec(compile(path.read_text(), path, "exec"), {})
        return [found.row()["score"] for found in read_states(load_plan(plan.folder.path)).values()]

    assert values("1.0") == [1.0, 1.0]
    assert values("2.0") == [2.0, 2.0]
    # A formula that did not change is not read again, even from another process or folder.
    monkeypatch.setattr(state, "read_row", None)
    assert values("2.0", "copy.py") == [2.0, 2.0]


def test_links_out_of_the_store_are_refused(tmp_path: Path) -> None:
    """A stranger's sweep must not write to, or delete in, a folder of the user."""
    plan, mine = small_plan(tmp_path / "s"), tmp_path / "mine"
    mine.mkdir()
    (mine / "failure.json").write_text("{}")
    store, name = plan.folder.store, plan.jobs[0].fingerprint
    store.jobs.mkdir()
    store.job(name).symlink_to(mine)
    with pytest.raises(LongshiftError, match=str(store.job(name))):
        write_failure(store, name, "an error")
    with pytest.raises(LongshiftError, match=str(store.job(name))):
        state.clear_failures(store, [name])
    assert (mine / "failure.json").read_text() == "{}"

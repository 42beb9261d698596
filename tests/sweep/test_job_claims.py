"""Claims on jobs: exclusive, renewed, and lost by a killed holder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from longshift.sweep import job_claims as claims

HOLD = """
import sys, time
from pathlib import Path
from longshift.sweep import job_claims as claims
claim = claims.take(Path(sys.argv[1]))
print("held" if claim else "refused", flush=True)
time.sleep(60)
"""


def test_a_claim_is_exclusive_and_given_back(tmp_path: Path) -> None:
    path = tmp_path / "claims" / "a"
    first = claims.take(path)
    assert first is not None
    with first:
        assert claims.is_held(path)
        assert claims.take(path) is None
    assert not claims.is_held(path)
    assert not path.exists()
    second = claims.take(path)
    assert second is not None
    with second:
        pass


def test_a_killed_holder_loses_its_claim(tmp_path: Path) -> None:
    path = tmp_path / "a"
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    assert claims.is_held(path)
    assert claims.take(path) is None
    process.kill()
    process.wait()
    process.stdout.close()
    assert not claims.is_held(path)
    mine = claims.take(path)
    assert mine is not None
    with mine:
        assert json.loads(path.read_text())["pid"] == os.getpid()


@pytest.mark.parametrize(("age", "held"), [(claims.STALE / 2, True), (claims.STALE * 2, False)])
def test_another_machines_claim_holds_while_it_is_renewed(tmp_path: Path, age: float, held: bool) -> None:
    """Where locks do not reach other machines: the file is not locked here, only its stamp speaks."""
    path = tmp_path / "a"
    path.write_text(json.dumps({"machine": "elsewhere/1", "pid": 1}))
    os.utime(path, (time.time() - age, time.time() - age))
    assert claims.is_held(path) is held
    taken = claims.take(path)
    assert (taken is None) is held
    if taken is not None:
        with taken:
            pass


def test_a_claim_is_renewed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "BEAT", 0.02)
    path = tmp_path / "a"
    claim = claims.take(path)
    assert claim is not None
    with claim:
        os.utime(path, (1, 1))
        deadline = time.monotonic() + 10
        while path.stat().st_mtime < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert path.stat().st_mtime > 2

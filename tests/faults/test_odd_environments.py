"""No home, no terminal, another language, closed streams, a missing folder for temporary files, other rights."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.tools import LONG, PROGRAM, tiny_sites

# Variables to set, None to remove.
ENVIRONMENTS: dict[str, dict[str, str | None]] = {
    "no HOME": {"HOME": None, "XDG_CACHE_HOME": None},
    "HOME that is missing": {"HOME": "/nonexistent/home"},
    "no TERM": {"TERM": None},
    "TERM=dumb": {"TERM": "dumb"},
    "LANG=C": {"LANG": "C", "LC_ALL": None},
    "ASCII file names": {"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    "unknown language": {"LANG": "xx_YY.UTF-99", "LC_ALL": "xx_YY.UTF-99"},
    "ASCII streams": {"PYTHONIOENCODING": "ascii:strict"},
    "terminal of 5 columns": {"COLUMNS": "5", "LINES": "2"},
    "terminal of no size": {"COLUMNS": "0", "LINES": "0"},
    "width that is text": {"COLUMNS": "wide"},
    "TMPDIR that is missing": {"TMPDIR": "/nonexistent/tmp"},
    "empty PATH": {"PATH": ""},
    "cache that is a file": {"LONGSHIFT_CACHE": "/dev/null"},
    "empty cache variable": {"LONGSHIFT_CACHE": ""},
    "NO_COLOR": {"NO_COLOR": "1", "FORCE_COLOR": "1"},
    "another time zone": {"TZ": "Nowhere/Else"},
    "nothing at all": {name: None for name in os.environ if name not in ("PYTHONPATH",)},
}
# How a shell would start the command.
SHELLS = {
    "closed stdin": '"$@" <&-',
    "closed stdout": '"$@" >&-',
    "closed stderr": '"$@" 2>&-',
    "all streams closed": '"$@" <&- >&- 2>&-',
    "umask 077": 'umask 077; "$@"',
    "umask 000": 'umask 000; "$@"',
    "no current folder": 'mkdir gone && cd gone && rmdir ../gone && "$@"',
    "in the background": '"$@" & wait $!',
}
VERBS: dict[str, tuple[str, ...]] = {
    "split make": (
        "split", "make", "{data}", "-s", "Natural", "-t", "north", "--shrink", "--validation", "1", "-o", "{out}",
    ),
    "data verify": ("data", "verify", "{data}"),
    "train": (
        "train", "--data", "{data}", "--setting", "Natural", "--shrink", "--validation", "1", "--target", "north",
        "--method", "erm", "--steps", "2", "--set", "batch_size=2", "--device", "cpu", "--out", "{out}",
    ),
}  # fmt: skip
TRIED = list(VERBS) if LONG else ["split make"]  # it reads and writes


def start(
    tmp_path: Path, verb: str, shell: str = '"$@"', changes: dict[str, str | None] | None = None
) -> tuple[subprocess.CompletedProcess[bytes], Path]:
    """Run a verb on sites with names that not every language has."""
    data, out = tiny_sites(tmp_path / "Größe 大"), tmp_path / "out.json"
    (data / "south" / "blue").rename(data / "south" / "bläulich")
    (data / "north" / "blue").rename(data / "north" / "bläulich")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "LONGSHIFT_CACHE": str(tmp_path / "cache")}
    for name, value in (changes or {}).items():
        if value is None:
            environment.pop(name, None)
        else:
            environment[name] = value
    words = [word.format(data=data, out=out) for word in VERBS[verb]]
    command = ["sh", "-c", shell, "sh", sys.executable, "-c", PROGRAM, *words]
    if "PATH" in environment and not environment["PATH"]:
        command = command[4:]
    found = subprocess.run(command, capture_output=True, check=False, env=environment, cwd=tmp_path, timeout=300)
    assert b"Traceback" not in found.stderr, found.stderr.decode(errors="replace")[-2000:]
    return found, out


@pytest.mark.slow
@pytest.mark.parametrize("verb", TRIED)
@pytest.mark.parametrize("name", ENVIRONMENTS if LONG else ["nothing at all", "TMPDIR that is missing"])
def test_an_odd_environment_changes_nothing(tmp_path: Path, name: str, verb: str) -> None:
    found, out = start(tmp_path, verb, changes=ENVIRONMENTS[name])
    if name == "cache that is a file" and verb == "train":
        assert found.returncode == 1
        assert b"cannot write" in found.stderr
        return
    if name == "ASCII file names":  # Python was told to misread them; it is not known what they mean
        assert found.returncode in (1, 2)
        assert b"Run again with PYTHONUTF8=1" in found.stderr
        return
    assert found.returncode == 0, found.stderr
    assert out.exists() or verb == "data verify"


@pytest.mark.slow
@pytest.mark.parametrize("verb", TRIED)
@pytest.mark.parametrize("name", SHELLS if LONG else ["all streams closed", "umask 077"])
def test_an_odd_start_changes_nothing(tmp_path: Path, name: str, verb: str) -> None:
    found, out = start(tmp_path, verb, SHELLS[name])
    if name == "no current folder":
        assert found.returncode == 1
        assert b"the current folder does not exist any more" in found.stderr
        return
    assert found.returncode == 0, found.stderr
    if verb == "data verify":
        return
    assert out.exists()
    if name.startswith("umask"):
        mask = int(name.split()[1], 8)
        for path in (out, *out.rglob("*")):
            most = 0o777 if path.is_dir() else 0o666
            assert stat.S_IMODE(path.stat().st_mode) == most & ~mask, path

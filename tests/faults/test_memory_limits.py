"""Too little memory: the command ends with a sentence, and nothing that was finished is lost."""

from __future__ import annotations

import re
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from longshift.cli.main import LEAST_MEMORY
from tests.faults.tools import LONG, PROGRAM, leftovers, outcome

MIB = 1 << 20
VERBS: dict[str, tuple[str, ...]] = {
    "data inspect": ("data", "inspect", "pacs-features"),
    "data verify": ("data", "verify", "pacs-features", "-q"),
    "split make": ("split", "make", "pacs-features", "-s", "Duality", "-t", "photo", "-o", "{out}"),
    "train": (
        "train", "--data", "digits", "--target", "ink", "--method", "erm", "--steps", "3", "--set", "batch_size=4",
        "--device", "cpu", "-q", "--out", "{out}",
    ),
    "train --resume": ("train", "--resume", "{run}", "--device", "cpu", "-q"),
    "predict": ("predict", "{run}", "{run}", "--device", "cpu", "-q", "--out", "{out}.csv"),
    "evaluate": ("evaluate", "{run}", "--device", "cpu", "-q"),
}  # fmt: skip
LIMITS = (120, 250, 500, 1000, 2000, 4000) if LONG else (120, 250)


def limited(mib: int) -> Callable[[], None]:
    """For the child: an address space of so many MiB, as `ulimit -v` sets it."""
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (mib * MIB, mib * MIB))


@pytest.mark.slow
@pytest.mark.parametrize("mib", LIMITS)
@pytest.mark.parametrize("name", VERBS if LONG else ["train"])
def test_too_little_memory_ends_in_words(tmp_path: Path, digits_run: Path, name: str, mib: int) -> None:
    before = {path: path.read_bytes() for path in digits_run.rglob("*") if path.is_file()}
    words = [word.format(out=tmp_path / "out", run=digits_run) for word in VERBS[name]]
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words], capture_output=True, text=True, check=False, timeout=300,
        preexec_fn=limited(mib),
    )  # fmt: skip
    said = found.stderr
    assert found.returncode in (0, 1), (found.returncode, said)
    assert "Traceback" not in said, said
    if mib * MIB < LEAST_MEMORY:  # refused before NumPy is imported, which may crash
        assert f"(`ulimit -v`) is {mib} MiB" in said, said
    if found.returncode and "finished" not in said and "no images" not in said.lower():
        assert re.search("memory|Expected", said), said
    assert {path: path.read_bytes() for path in digits_run.rglob("*") if path.is_file()} == before
    assert not leftovers(tmp_path)
    out = tmp_path / "out"
    if name == "train" and found.returncode and out.exists():  # with memory again, the same run goes on
        assert outcome("train", "--resume", str(out), "--device", "cpu", "-q") is None

"""Commands in processes of their own, ways to damage files, and a disk that can be full."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from longshift.cli.main import app
from longshift.errors import LongshiftError

T = TypeVar("T")
LONG = os.environ.get("LONGSHIFT_FAULTS") == "long"  # set by `make faults`; otherwise a few cases of each kind
PROGRAM = "from longshift.cli.main import main; main()"
# A fit asks for more free space than the small disks here have.
SMALL_FIT = f"import longshift.fitting.fit_run as run; run.SPARE_BYTES = 0; {PROGRAM}"

DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda raw: b"",
    "half": lambda raw: raw[: 2 * len(raw) // 5],
    "zeros": lambda raw: bytes(len(raw)),
    "text": lambda raw: b"[1, 2]\n",
    "object": lambda raw: b"{}\n",
    "not UTF-8": lambda raw: b"\xff\xfe" + raw,
}


def flipped(raw: bytes, place: int) -> bytes:
    """One bit is another."""
    place %= len(raw)
    return raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :]


def command(*arguments: str, program: str = PROGRAM) -> list[str]:
    """What to start."""
    return [sys.executable, "-c", program, *arguments]


def outcome(*arguments: str) -> LongshiftError | None:
    """Run a command in this process: its error, None if it went well. Any other exception is a failure of the test."""
    found = CliRunner().invoke(app, list(arguments))
    if found.exception is None:
        return None
    assert isinstance(found.exception, LongshiftError), "".join(map(repr, found.exc_info or ())) + found.output
    return found.exception


def loaded_or_error(load: Callable[[], T]) -> T | LongshiftError:
    """What it loads, or how it is refused."""
    try:
        return load()
    except LongshiftError as error:
        return error


def leftovers(folder: Path) -> list[Path]:
    """Half-written files."""
    return [path for path in folder.rglob("*") if path.name.endswith(".part")]


def on_small_disk(folder: Path, kib: int, before: Path | None, after: Path, arguments: list[str]) -> tuple[int, str]:
    """Run a command with `folder` on a disk of its own; what is there at the end comes to `after`.

    The disk is a tmpfs in a mount name space of its own, gone with the process; `before` is copied onto it first.
    """
    folder.mkdir()
    unshare = ["unshare", "-Urm"]
    trial = [*unshare, "mount", "-t", "tmpfs", "tmpfs", str(folder)]
    if not shutil.which("unshare") or subprocess.run(trial, capture_output=True, check=False).returncode:
        pytest.skip("needs a mount name space (unshare -Urm)")
    place, copy = shlex.quote(str(folder)), shlex.quote(str(after))
    script = f"mount -t tmpfs -o size={kib}k tmpfs {place} && "
    if before is not None:
        script += f"cp -r {shlex.quote(str(before))}/. {place} && "
    script += f'"$@"; code=$?; cp -r {place} {copy}; exit $code'
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    found = subprocess.run(
        [*unshare, "sh", "-c", script, "sh", *arguments],
        capture_output=True, text=True, check=False, timeout=400, env=environment,
    )  # fmt: skip
    return found.returncode, found.stderr


def tiny_sites(root: Path, names: tuple[str, ...] = ("red", "blue"), each: int = 3) -> Path:
    """Images of 16 x 16 pixels: two sites, a colour a class."""
    rng = np.random.default_rng(0)
    for site in ("north", "south"):
        for k, name in enumerate(names):
            (root / site / name).mkdir(parents=True)
            for i in range(each):
                pixels = rng.integers(0, 80, (16, 16, 3), dtype=np.uint8)
                pixels[..., k % 3] += 150
                Image.fromarray(pixels).save(root / site / name / f"{i}.png")
    return root

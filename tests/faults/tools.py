"""Commands in this process, ways to damage files, and disks that are full or read-only."""

from __future__ import annotations

import ctypes
import functools
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from longshift.cli.main import app
from longshift.errors import LongshiftError
from tests.commands import Command

T = TypeVar("T")
LONG = os.environ.get("LONGSHIFT_FAULTS") == "long"  # set by `make faults`; otherwise a few cases of each kind
FIT = (
    "--method", "erm", "--steps", "4", "--set", "batch_size=4", "--backbone", "small_conv", "--image-size", "16",
    "--device", "cpu", "-q",
)  # fmt: skip
PROGRAM = "from longshift.cli.main import main; main()"

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


def need_own_mounts() -> None:
    """Skip the test where a process cannot have mounts of its own."""
    if not shutil.which("unshare") or subprocess.run(["unshare", "-Urm", "true"], check=False).returncode:
        pytest.skip("needs a mount name space (unshare -Urm)")


def own_mounts(*mounts: tuple[str, ...]) -> None:
    """Mount, for this process and its children alone; what `unshare -Urm` does."""
    user, group = os.getuid(), os.getgid()
    if ctypes.CDLL(None, use_errno=True).unshare(0x10000000 | 0x00020000):  # CLONE_NEWUSER | CLONE_NEWNS
        raise OSError(ctypes.get_errno(), "unshare")
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"0 {user} 1")
    Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    for words in (("--make-rprivate", "/"), *mounts):
        subprocess.run(["mount", *words], check=True)


@contextmanager
def small_disk(folder: Path, kib: int, before: Path | None, after: Path) -> Iterator[None]:
    """`folder` is a disk of its own with the files of `before`; what is there at the end comes to `after`."""
    from longshift.fitting import fit_run

    fit_run.SPARE_BYTES = 0  # a fit asks for more free space than this disk has
    own_mounts(("-t", "tmpfs", "-o", f"size={kib}k", "tmpfs", str(folder)))
    if before is not None:
        shutil.copytree(before, folder, dirs_exist_ok=True)
    try:
        yield
    finally:
        shutil.copytree(folder, after)


def on_small_disk(folder: Path, kib: int, before: Path | None, after: Path, words: Sequence[str]) -> tuple[int, str]:
    """Run a command with `folder` on a disk of its own, see `small_disk`: its exit code and standard error."""
    need_own_mounts()
    folder.mkdir()
    process = Command(*words, around=functools.partial(small_disk, folder, kib, before, after))
    _, text = process.communicate()
    assert process.returncode is not None
    return process.returncode, text


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Nothing below `folder` can be written."""
    own_mounts(("--bind", str(folder), str(folder)), ("-o", "remount,bind,ro", str(folder)))
    yield


def tiny_sites(root: Path, names: tuple[str, ...] = ("red", "blue"), each: int = 3) -> Path:
    """Images of 16 x 16 pixels: two sites, one color per class."""
    rng = np.random.default_rng(0)
    for site in ("north", "south"):
        for k, name in enumerate(names):
            (root / site / name).mkdir(parents=True)
            for i in range(each):
                pixels = rng.integers(0, 80, (16, 16, 3), dtype=np.uint8)
                pixels[..., k % 3] += 150
                Image.fromarray(pixels).save(root / site / name / f"{i}.png")
    return root

"""Commands in this process, small images, and two faults: a kill and a full disk, each at a given write."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from longshift.cli.main import app
from longshift.errors import LongshiftError

FIT = (
    "--method", "erm", "--steps", "4", "--set", "batch_size=4", "--network", "small_conv", "--image-size", "16",
    "--device", "cpu", "-q",
)  # fmt: skip


def outcome(*arguments: object) -> LongshiftError | None:
    """Run a command in this process: its error, None if it went well. Any other exception is a failure of the test."""
    found = CliRunner().invoke(app, list(map(str, arguments)))
    if found.exception is None:
        return None
    assert isinstance(found.exception, LongshiftError), "".join(map(repr, found.exc_info or ())) + found.output
    return found.exception


def leftovers(folder: Path) -> list[Path]:
    """Half-written files."""
    return [path for path in folder.rglob("*") if path.name.endswith(".part")]


@contextmanager
def _at_write(name: str, number: int, fault: Callable[[], None]) -> Iterator[None]:
    """Call `fault` before a file called `name` appears for the `number`-th time, and at each later one."""
    replace, seen = os.replace, 0

    def counted(source: Any, target: Any) -> None:
        nonlocal seen
        seen += Path(target).name == name
        if seen >= number and Path(target).name == name:
            fault()
        replace(source, target)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "replace", counted)
        yield


@contextmanager
def killed_at_write(name: str, number: int = 1) -> Iterator[None]:
    """For a `Command`: SIGKILL for it and its workers."""
    with _at_write(name, number, lambda: os.killpg(0, signal.SIGKILL)):
        yield


@contextmanager
def full_disk_at_write(name: str, number: int = 1) -> Iterator[None]:
    """From then on, such a file does not fit on the disk."""

    def full() -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with _at_write(name, number, full):
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

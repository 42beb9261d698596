"""Small datasets on disk for the tests, and where PACS lies."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

ROOT = Path(__file__).parents[2]


def pacs() -> Path:
    """The PACS archive; the test skips, with the reason, where it is absent."""
    return _archive("PACS")


def ham10000() -> Path:
    """The HAM10000 archive; the test skips, with the reason, where it is absent."""
    return _archive("HAM10000")


def _archive(name: str) -> Path:
    path = Path(os.environ.get(f"LONGSHIFT_{name}", ROOT / ".." / "shared" / "data" / f"{name}.zip"))
    if not path.exists():
        pytest.skip(f"no {name} at {path}; set LONGSHIFT_{name} to a folder or .zip that has it")
    return path


def picture(seed: int, width: int = 12, height: int = 9) -> npt.NDArray[np.uint8]:
    """Random RGB pixels."""
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def encoded(pixels: npt.NDArray[np.uint8], format: str = "PNG") -> bytes:
    """The bytes of an image file."""
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, format)
    return buffer.getvalue()


def make_tree(
    root: Path, domains: Iterable[str] = ("paint", "photo"), classes: Iterable[str] = ("cat", "dog"), each: int = 3
) -> Path:
    """A folder domain/class/image, every picture different."""
    seed = 0
    classes = list(classes)
    for domain in domains:
        for label in classes:
            folder = root / domain / label
            folder.mkdir(parents=True)
            for number in range(each):
                (folder / f"{number}.png").write_bytes(encoded(picture(seed)))
                seed += 1
    return root


def zip_tree(folder: Path, archive: Path, prefix: str = "") -> Path:
    """Pack a folder, optionally inside a wrapping folder."""
    with zipfile.ZipFile(archive, "w") as out:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                out.write(path, prefix + path.relative_to(folder).as_posix())
    return archive

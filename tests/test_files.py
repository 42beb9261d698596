"""Files and folders appear whole, and nothing is overwritten that another command made meanwhile."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from longshift.errors import LongshiftError
from longshift.files import replacing, replacing_folder


@pytest.mark.parametrize("other", ["folder", "file"])
def test_a_folder_that_another_command_made_meanwhile_stays(tmp_path: Path, other: str) -> None:
    target = tmp_path / "out"

    def write_slowly() -> None:
        with replacing_folder(target) as made:
            (made / "mine").write_text("mine")
            if other == "folder":
                target.mkdir()
            (target / "theirs" if other == "folder" else target).write_text("theirs")

    with pytest.raises(LongshiftError, match=r"out exists\. Choose another --out, or remove that folder"):
        write_slowly()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert (target / "theirs" if other == "folder" else target).read_text() == "theirs"


def test_a_folder_is_on_the_disk_before_it_gets_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[Path] = []
    fsync = os.fsync

    def record(handle: int) -> None:
        synced.append(Path(os.readlink(f"/proc/self/fd/{handle}")))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", record)
    with replacing_folder(tmp_path / "out") as made:
        (made / "part").mkdir()
        (made / "part" / "file").write_text("x")
    assert {path.relative_to(made) for path in synced if path.is_relative_to(made)} == {
        Path(), Path("part"), Path("part/file"),
    }  # fmt: skip
    assert synced[-1] == tmp_path
    assert (tmp_path / "out" / "part" / "file").read_text() == "x"


@pytest.mark.parametrize("write", [replacing, replacing_folder])
def test_a_failure_leaves_nothing(tmp_path: Path, write: Callable[[Path], AbstractContextManager[Path]]) -> None:
    with pytest.raises(ValueError, match="odd"), write(tmp_path / "out"):
        raise ValueError("odd")
    assert not list(tmp_path.iterdir())

"""Files and folders appear whole, and nothing is overwritten that another command made meanwhile."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from longshift.errors import LongshiftError
from longshift.io import _sync, replacing, replacing_folder, write_text


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


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="only Linux tells which file a handle is of")
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


def test_windows_gets_a_handle_that_may_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There, `os.fsync` refuses a handle that may only read, and folders cannot be opened at all."""
    asked: list[tuple[Path, int]] = []
    file = tmp_path / "file"
    file.write_text("x")

    def opened(path: Path, flags: int) -> int:
        asked.append((path, flags))
        return os.dup(1)

    with monkeypatch.context() as patch:
        patch.setattr(os, "name", "nt")
        patch.setattr(os, "open", opened)
        patch.setattr(os, "fsync", lambda handle: None)
        _sync(file)
        _sync(tmp_path)
    assert asked == [(file, os.O_RDWR)]


@pytest.mark.parametrize("write", [replacing, replacing_folder])
def test_a_failure_leaves_nothing(tmp_path: Path, write: Callable[[Path], AbstractContextManager[Path]]) -> None:
    with pytest.raises(ValueError, match="odd"), write(tmp_path / "out"):
        raise ValueError("odd")
    assert not list(tmp_path.iterdir())


def test_writing_leaves_the_mode_of_other_threads_files_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(mask: int) -> int:
        raise AssertionError("the umask belongs to the whole process")

    monkeypatch.setattr(os, "umask", refuse)
    write_text(tmp_path / "a.txt", "a")
    (tmp_path / "b.txt").write_text("b")
    assert (tmp_path / "a.txt").stat().st_mode == (tmp_path / "b.txt").stat().st_mode

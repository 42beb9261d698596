"""Files and folders appear whole; locks hold between real processes, including processes that are killed."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from filelock import FileLock

from longshift.errors import LongshiftError
from longshift.io import lock_folder, replacing, replacing_folder, try_lock, write_text

HOLD = """
import sys
from pathlib import Path
from longshift.io import try_lock
lock = try_lock(Path(sys.argv[1]))
print("held" if lock else "refused", flush=True)
sys.stdin.readline()
if lock:
    lock.release()
"""


def start(code: str, path: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def test_a_killed_process_loses_its_lock(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    with start(HOLD, path) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        assert try_lock(path) is None
        process.kill()
        process.wait()
    lock = try_lock(path)
    assert lock is not None
    lock.release()


def test_a_folder_is_for_one_command(tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "one"
    with lock_folder(folder):
        (folder / "result.json").touch()
        (folder / ".result.json.x.part").touch()
        with pytest.raises(LongshiftError, match="one"), lock_folder(folder):
            pass
        assert folder.exists()
    with lock_folder(folder):
        assert not (folder / ".result.json.x.part").exists()  # left by a killed command
    assert {path.name for path in folder.iterdir()} == {"result.json", ".lock"}


def test_a_mistaken_request_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="mistake"), lock_folder(tmp_path / "out"):
        raise ValueError("mistake")
    assert list(tmp_path.iterdir()) == []


def test_a_read_only_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: object, *args: object, **options: object) -> None:
        raise OSError(errno.EROFS, "read-only file system")

    monkeypatch.setattr(FileLock, "acquire", refuse)
    with pytest.raises(LongshiftError, match="read-only"), lock_folder(tmp_path / "out"):
        pass


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.ENOTSUP])
def test_without_locks_of_the_file_system_work_is_not_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def refuse(self: object, *args: object, **options: object) -> None:
        raise OSError(code, "no locks")

    monkeypatch.setattr(FileLock, "acquire", refuse)
    with lock_folder(tmp_path / "out") as real_lock:
        assert not real_lock


@pytest.mark.parametrize("other", ["folder", "file"])
def test_a_folder_that_another_command_made_meanwhile_stays(tmp_path: Path, other: str) -> None:
    target = tmp_path / "out"

    def write_slowly() -> None:
        with replacing_folder(target) as made:
            (made / "mine").write_text("mine")
            if other == "folder":
                target.mkdir()
            (target / "theirs" if other == "folder" else target).write_text("theirs")

    with pytest.raises(LongshiftError, match="--out"):
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

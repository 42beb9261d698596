"""Files, and locks between processes.

Files appear by rename: a reader sees the old file or the new one, never half of either. A lock ends with its process,
however the process ends.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import json
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longshift.errors import LongshiftError, UsageError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from filelock import BaseFileLock

MOST_TEXT = 1 << 28  # bytes of a JSON or TOML file


def _read_umask() -> int:
    """The mode bits that new files lack. They can only be read by setting them, for all threads of the process."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


_UMASK = _read_umask()  # at import, before any thread writes a file


class FileIn:
    """A path in a folder, as an attribute of the class that describes the folder by its `path`."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, folder: Any, owner: type) -> Path:
        return Path(folder.path / self.name)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path next to `path`; on success it replaces `path`, on failure it is removed."""
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    except OSError as error:
        raise cannot_write(path, error) from error
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        _sync(temporary)
        # mkstemp makes files private; the result gets the mode an ordinary open() would have given it.
        temporary.chmod(0o666 & ~_UMASK)
        os.replace(temporary, path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise cannot_write(path, error) from error
        raise


@contextlib.contextmanager
def replacing_folder(folder: Path) -> Iterator[Path]:
    """Yield a hidden empty folder next to `folder`, which must not exist; on success it gets that name.

    Raises:
        LongshiftError: A file cannot be written, or the folder exists.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}.", suffix=".part"))
    except OSError as error:
        raise cannot_write(folder, error) from error
    try:
        yield temporary
        for path in (*temporary.rglob("*"), temporary):
            _sync(path)
        temporary.chmod(0o777 & ~_UMASK)
        os.rename(temporary, folder)
        _sync(folder.parent)
    except OSError as error:
        shutil.rmtree(temporary, ignore_errors=True)
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR) and os.path.lexists(folder):
            raise folder_exists(folder) from error  # another command was faster
        raise cannot_write(folder, error) from error
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def folder_exists(folder: Path) -> LongshiftError:
    """The error of a command whose new folder is there already."""
    return LongshiftError(f"{folder} exists. Choose another --out, or remove that folder.")


def _sync(path: Path) -> None:
    """Wait until a file, or the list of files in a folder, is on the disk."""
    if os.name == "nt" and path.is_dir():
        return  # Windows cannot open folders
    # Windows writes a file to the disk only through a handle that may write.
    handle = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def cannot_write(path: Path | str, error: OSError) -> LongshiftError:
    """Turn the operating system's error into words a user can act on."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return LongshiftError(f"cannot write {path}: the disk is full. Free some space or choose another folder.")
    if error.errno in (errno.EACCES, errno.EROFS, errno.EPERM):
        return LongshiftError(f"cannot write {path}: the folder is read-only. Choose a folder you may write to.")
    return LongshiftError(f"cannot write {path}: {error.strerror or error}")


def require_writable(path: Path) -> None:
    """Raise if a file cannot be written there: called before the work whose result it is to hold."""
    if path.is_dir():
        raise LongshiftError(f"cannot write {path}: it is a folder. Choose a file in it, such as {path / 'NAME'}.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise cannot_write(path, error) from error


def refuse_overwrite(out: Path, inputs: Iterable[Path | str]) -> None:
    """Raise if a file to be written is an input, or a file by which an input folder is a model, run, sweep or table."""
    if not out.exists():
        return
    own = out.name == "runs.parquet" or out.suffix.lower() in (".json", ".toml", ".safetensors")
    for path in map(Path, inputs):
        inside = own and path.is_dir() and out.resolve().is_relative_to(path.resolve())
        if inside or (path.exists() and path.samefile(out)):
            raise LongshiftError(f"{out} is an input of this command and would be overwritten. Choose another file.")


def require_inside(path: Path, folder: Path) -> None:
    """Raise if a path in a folder leads out of it through a link: what is written there may be another's."""
    if not path.resolve().is_relative_to(folder.resolve()):
        raise LongshiftError(f"cannot write {path}: it leads to {path.resolve()}, outside {folder}. Remove the link.")


def require_regular(path: Path | str) -> os.stat_result:
    """The status of a plain file; a pipe, a device or a socket is refused, which may never end or never begin.

    Raises:
        OSError: There is no such file, or it is not a plain one.
    """
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        kind = "a folder" if stat.S_ISDIR(status.st_mode) else "a pipe, device or socket"
        raise OSError(errno.EINVAL, f"expected a file, got {kind}", str(path))
    return status


def read_limited(path: Path | str, most: int) -> bytes:
    """All bytes of a plain file of at most `most` bytes.

    Raises:
        OSError: It is not a plain file, is too large, or cannot be read.
    """
    if require_regular(path).st_size > most:
        raise OSError(errno.EFBIG, f"the file is larger than {most / 2**20:.0f} MiB", str(path))
    with open(path, "rb") as file:
        data = file.read(most + 1)
    if len(data) > most:  # it grew, or its size was not true (/proc)
        raise OSError(errno.EFBIG, f"the file is larger than {most / 2**20:.0f} MiB", str(path))
    return data


def write_text(path: Path, text: str) -> None:
    """Write a text file by rename."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any) -> None:
    """Write JSON by rename, keys in the order given."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def read_json(path: Path) -> Any:
    """Read JSON; a missing or broken file is named, also one with NaN, which JSON does not have."""
    try:
        return json.loads(read_limited(path, MOST_TEXT).decode("utf-8"), parse_constant=_no_constant)
    except FileNotFoundError:
        raise LongshiftError(f"no file {path}") from None
    except (OSError, ValueError, RecursionError) as error:  # broken JSON is a ValueError, as are numbers too long
        raise LongshiftError(f"cannot read {path} as JSON: {error}") from error


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON value")


def read_toml(path: Path) -> dict[str, Any]:
    """A TOML file as a mapping; a missing or broken file is named."""
    try:
        return tomllib.loads(read_limited(path, MOST_TEXT).decode("utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:  # not UTF-8, not TOML, a number too long, nested too deeply
        raise UsageError(f"{path} is not valid TOML: {error}") from error


def parse_value(text: str) -> Any:
    """One value as TOML would read it (0.3, true, [1, 2]); anything else is plain text."""
    try:
        return tomllib.loads(f"v = {text}")["v"]
    except (ValueError, RecursionError):
        return text.strip()


def content_hash(value: Any) -> str:
    """SHA-256 (hex) of a JSON value; keys are sorted, so the order of writing does not matter."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def split_paths(text: str | os.PathLike[str]) -> list[Path]:
    """Paths with commas between them; what exists is one path, whatever its name."""
    whole = os.fspath(text)
    return [Path(whole)] if os.path.lexists(whole) else [Path(part.strip()) for part in whole.split(",")]


def file_hash(path: Path) -> str:
    """SHA-256 (hex) of a file's contents; read again only when the file's size or time has changed."""
    path = Path(path)
    try:
        status = require_regular(path)
        return _file_hash(path.resolve(), status.st_size, status.st_mtime_ns)
    except OSError as error:
        raise LongshiftError(f"cannot read {path}: {error.strerror or error}") from error


@functools.lru_cache(maxsize=64)
def _file_hash(path: Path, size: int, changed: int) -> str:
    found = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            found.update(block)
    return found.hexdigest()


LOCK_PATIENCE = 0.1  # seconds; a command that was just killed holds its lock for a moment
UNSUPPORTED = (errno.ENOSYS, errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP)


class FolderInUse(LongshiftError):
    """Another command writes to the folder."""


def try_lock(path: Path, patience: float = LOCK_PATIENCE) -> BaseFileLock | None:
    """Lock a file, which is created and stays; None if another process still holds it after `patience` seconds.

    Args:
        path: The lock file.
        patience: Seconds; -1 waits forever.

    Returns:
        The lock. Its `is_locked` is False where the file system has no locks and nothing is protected.

    Raises:
        OSError: The file cannot be created.
    """
    from filelock import FileLock, Timeout  # takes longer to import than all of this module

    if path.is_symlink():  # never ours: in a folder of a stranger, it may lead to any file of the user
        path.unlink()
    lock = FileLock(path, thread_local=False)
    try:
        lock.acquire(timeout=patience, poll_interval=0.01 if 0 <= patience <= LOCK_PATIENCE else 0.1)
    except Timeout:
        return None
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise
    return lock


@contextlib.contextmanager
def locked(path: Path, on_wait: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold a lock file inside the block; `on_wait` is called once if another process holds it."""
    lock = try_lock(path)
    if lock is None:
        on_wait()
        lock = try_lock(path, patience=-1)
    try:
        yield
    finally:
        if lock is not None:
            lock.release()


@contextlib.contextmanager
def lock_folder(folder: Path) -> Iterator[bool]:
    """Keep other commands out of a folder, which is created, and remove what a killed one left half-written.

    An empty folder is removed after an error: a request with a mistake in it leaves nothing behind.

    Yields:
        Whether the lock is real; some file systems have none.

    Raises:
        LongshiftError: Another command holds the folder, or the folder cannot be written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = try_lock(folder / ".lock")
    except OSError as error:
        raise cannot_write(folder, error) from error
    if lock is None:
        raise FolderInUse(f"another command is using {folder}. Wait until it ends, or choose another --out.")
    try:
        if lock.is_locked:
            for part in folder.glob(".*.part"):  # nobody is writing them
                part.unlink(missing_ok=True)
        yield lock.is_locked
    except BaseException:
        with contextlib.suppress(OSError):
            if [path.name for path in folder.iterdir()] == [".lock"]:
                shutil.rmtree(folder)
        raise
    finally:
        lock.release()

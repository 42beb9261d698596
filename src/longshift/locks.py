"""Locks between processes. A lock ends with its process, however the process ends.

A holder removes the lock file while it still holds the lock, so nothing is left in a finished folder. This is safe
while others wait, because only a holder removes the file and because each attempt of a waiting process opens the file
anew, tries to lock it and, once it has the lock, asks whether the file still has a name (`filelock` does all this). If
not, the attempt starts over. The answer is also right on NFS: a client that gets a lock drops what it has cached about
the file, so the server answers; if the server has forgotten the file, the attempt fails with ESTALE and starts over.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable, Iterator
from pathlib import Path

from filelock import BaseFileLock, FileLock, SoftFileLock, Timeout

from longshift.errors import LongshiftError
from longshift.files import cannot_write, remove_parts

BRIEFLY = 0.1  # seconds; `is_locked` of another process holds a free lock for a moment
STALE_ATTEMPTS = 10
UNSUPPORTED = (errno.ENOSYS, errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP)


class FolderInUse(LongshiftError):
    """Another command writes to the folder."""


class HeldLock:
    """A lock that this process holds; `real` is False where the file system has no locks and nothing is protected."""

    def __init__(self, path: Path, lock: BaseFileLock | None) -> None:
        self.path, self.real, self._lock = path, lock is not None, lock

    def release(self) -> None:
        """Remove the lock file and give the lock back; the second call does nothing."""
        lock, self._lock = self._lock, None
        if lock is None:
            return
        if not isinstance(lock, SoftFileLock):  # where the file itself is the lock, releasing removes it
            with contextlib.suppress(OSError):  # Windows removes it on release
                self.path.unlink()
        lock.release()


def try_lock(path: Path, patience: float = BRIEFLY) -> HeldLock | None:
    """Lock a file, which is created; None if another process still holds it after `patience` seconds (-1: forever).

    Raises:
        OSError: The file cannot be created.
    """
    if path.is_symlink():  # never ours: in a folder of a stranger, it may lead to any file of the user
        path.unlink()
    for attempts_left in reversed(range(STALE_ATTEMPTS)):
        lock = FileLock(path, thread_local=False)
        try:
            lock.acquire(timeout=patience, poll_interval=0.01 if 0 <= patience <= BRIEFLY else 0.1)
            return HeldLock(path, lock)
        except Timeout:
            return None
        except OSError as error:
            if error.errno == errno.ESTALE and attempts_left:  # removed on another machine while it was opened here
                continue
            if error.errno not in UNSUPPORTED:
                raise
            if error.errno != errno.ENOLCK:  # that may pass, and the file may be another's lock
                path.unlink(missing_ok=True)
            return HeldLock(path, None)
    raise AssertionError("the last attempt returns or raises")


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


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock file now, or may hold it: True where the file cannot be opened."""
    if not path.exists():
        return False
    try:
        lock = try_lock(path, patience=0)
    except OSError:
        return True
    if lock is not None:
        lock.release()
    return lock is None


@contextlib.contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Keep other commands out of a folder, which is created, and remove what a killed one left half-written.

    An empty folder is removed after an error: a request with a mistake in it leaves nothing behind.

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
        if lock.real:
            remove_parts(folder)  # nobody is writing them
        yield
    except BaseException:
        lock.release()
        with contextlib.suppress(OSError):
            folder.rmdir()  # fails unless the folder is empty
        raise
    finally:
        lock.release()

"""Who runs a job. A claim is a locked file; the operating system gives the lock back when its holder dies.

Some network file systems keep such locks to one machine. A claim therefore also says who holds it, and the holder
renews the file's time stamp: a free lock with a fresh stamp from another machine counts as held. The clocks of the
machines may differ by less than `STALE`.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import json
import os
import socket
import threading
import time
import uuid
from pathlib import Path
from types import TracebackType

BEAT = 15.0  # seconds between two renewals
STALE = 90.0  # a claim of another machine that was not renewed for so long is void


@functools.cache
def machine() -> str:
    """A name of this machine since it was started."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        boot = str(uuid.getnode())
    return f"{socket.gethostname()}/{boot[:13]}"


class Claim:
    """A held claim; use it in a `with` block, which renews it and gives it back."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path, self._descriptor = path, descriptor
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._renew, daemon=True)

    def __enter__(self) -> Claim:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        # Removed while still locked: whoever opened it before sees that the file is gone and tries again.
        self.path.unlink(missing_ok=True)
        os.close(self._descriptor)

    def _renew(self) -> None:
        while not self._ended.wait(BEAT):
            with contextlib.suppress(OSError):
                os.utime(self._descriptor)


def take(path: Path) -> Claim | None:
    """Claim a job; None if somebody has it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for _ in range(5):  # a look by `is_held` keeps the lock for a moment, and a released file must be made anew
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        if _lock(descriptor) and _same_file(descriptor, path):
            if _of_another_machine(descriptor):
                os.close(descriptor)
                return None
            text = json.dumps({"machine": machine(), "pid": os.getpid(), "since": round(time.time())})
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, text.encode(), 0)
            return Claim(path, descriptor)
        os.close(descriptor)
        time.sleep(0.01)
    return None


def is_held(path: Path) -> bool:
    """Whether somebody runs the job now."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return not _lock(descriptor) or _of_another_machine(descriptor)
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks: the time stamps must do
        return True
    return True


def _same_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except OSError:
        return False


def _of_another_machine(descriptor: int) -> bool:
    try:
        holder = json.loads(os.pread(descriptor, 4096, 0) or b"{}").get("machine")
    except (OSError, ValueError, AttributeError):
        return False
    fresh = time.time() - os.fstat(descriptor).st_mtime < STALE
    return holder is not None and holder != machine() and fresh

"""Who runs a job. A claim is a lock, and the operating system gives a lock back when its holder dies.

Some network file systems keep locks to one machine. A claim therefore also names its holder in a file and renews the
file's time stamp: a free lock with a fresh stamp of another machine counts as held. The clocks of the machines may
differ by less than `STALE`.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import socket
import threading
import time
import uuid
from pathlib import Path
from types import TracebackType

from longshift.io import HeldLock, is_locked, read_limited, try_lock

BEAT = 15.0  # seconds between two renewals
MOST = 1 << 16  # bytes of a claim
STALE = 90.0  # a claim of another machine that was not renewed for this long is void


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

    def __init__(self, path: Path, lock: HeldLock) -> None:
        self.path, self._lock = path, lock
        self._text = json.dumps({"machine": machine(), "pid": os.getpid(), "since": round(time.time())})
        if self.path.is_symlink():  # in a folder of a stranger, it may lead to any file of the user
            self.path.unlink()
        self.path.write_text(self._text, encoding="utf-8")
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
        with contextlib.suppress(OSError):
            if self._is_ours():
                self.path.unlink()
        self._lock.release()

    def _renew(self) -> None:
        while not self._ended.wait(BEAT):
            with contextlib.suppress(OSError):
                if self._is_ours():
                    os.utime(self.path)

    def _is_ours(self) -> bool:
        """False when this process was suspended for so long that another machine has taken the claim."""
        return _read(self.path) == self._text


def take(path: Path) -> Claim | None:
    """Claim a job; None if somebody has it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = try_lock(_lock_of(path))
    if lock is None:
        return None
    try:
        if not _of_another_machine(path):
            return Claim(path, lock)
    except OSError:
        lock.release()
        raise
    lock.release()
    return None


def is_held(path: Path) -> bool:
    """Whether somebody runs the job now."""
    if not os.access(path.parent, os.W_OK):
        return _is_fresh(path)  # a lock cannot be tried without writing
    return is_locked(_lock_of(path)) or _of_another_machine(path)


def _lock_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.lock")


def _of_another_machine(path: Path) -> bool:
    try:
        holder = json.loads(_read(path)).get("machine")
    except (OSError, ValueError, AttributeError):
        return False
    return holder is not None and holder != machine() and _is_fresh(path)


def _read(path: Path) -> str:
    return read_limited(path, MOST).decode("utf-8")


def _is_fresh(path: Path) -> bool:
    try:
        # A stamp of tomorrow is no fresher than one of yesterday: a clock was wrong.
        return abs(time.time() - path.stat().st_mtime) < STALE
    except OSError:
        return False

"""One process at a time: a lock that the operating system gives back when its holder dies, however it dies."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def held(path: Path, waiting: Callable[[], None], pause: float = 0.1) -> Iterator[None]:
    """Hold the lock file; `waiting` is called once if another process has it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        told = False
        while not _take(descriptor):
            if not told:
                waiting()
                told = True
            time.sleep(pause)
        yield
    finally:
        os.close(descriptor)  # gives the lock back


def is_free(path: Path) -> bool:
    """Whether nobody holds the lock file now."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        return _take(descriptor)
    finally:
        os.close(descriptor)


def _take(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True

"""Ctrl-C once stops after the current step with everything saved; a second time stops at once.

SIGTERM always has the first meaning: `timeout` and cluster schedulers send it twice, once to the process and once to
its group, and follow it with SIGKILL where they cannot wait.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

from longshift.errors import LongshiftError


class Interrupted(LongshiftError):
    """The run was asked to stop and has saved its state."""

    exit_code = 130


@contextlib.contextmanager
def graceful_stop(announce: Callable[[], None] = lambda: None) -> Iterator[Callable[[], bool]]:
    """Yield a function that tells whether SIGINT or SIGTERM asked to stop; a second SIGINT stops at once."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set  # only the main thread may handle signals
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def handle(number: int, frame: FrameType | None) -> None:
        if asked.is_set():
            return
        asked.set()
        signal.signal(signal.SIGINT, before[signal.SIGINT])
        announce()

    for number in before:
        signal.signal(number, handle)
    try:
        yield asked.is_set
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)

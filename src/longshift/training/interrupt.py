"""Ctrl-C once stops after the current step with everything saved; a second time stops at once.

SIGTERM always has the first meaning: `timeout` and cluster schedulers send it twice, once to the process and once to
its group, and follow it with SIGKILL where they cannot wait. So has SIGHUP, which a terminal that closes sends; a
command started with `nohup` ignores it and goes on.
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


ASKING = (signal.SIGINT, signal.SIGTERM)  # also where a shell has them ignored
ENDINGS = tuple(signal.Signals[name] for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))  # Windows: one


@contextlib.contextmanager
def graceful_stop(announce: Callable[[], None] = lambda: None) -> Iterator[Callable[[], bool]]:
    """Yield a function that tells whether a signal asked to stop; a second SIGINT stops at once.

    Signals: SIGINT, SIGTERM and, unless it is ignored, SIGHUP.
    """
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set  # only the main thread may handle signals
        return
    known = {number: signal.getsignal(number) for number in (signal.SIGINT, *ENDINGS)}
    before = {n: handler for n, handler in known.items() if n in ASKING or handler is not signal.SIG_IGN}

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


def ignore_signals() -> None:
    """For the last moments of a stopped command: Python gives signals back to the system before it ends."""
    if threading.current_thread() is threading.main_thread():
        for number in ENDINGS:
            signal.signal(number, signal.SIG_IGN)

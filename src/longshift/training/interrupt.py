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


ENDINGS = tuple(signal.Signals[name] for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))  # Windows: one
_asked = threading.Event()  # whether this process was ever asked to stop


@contextlib.contextmanager
def graceful_stop(announce: Callable[[], None] = lambda: None) -> Iterator[Callable[[], bool]]:
    """Yield a function that tells whether a signal asked to stop; a second SIGINT stops at once.

    Signals: SIGINT, SIGTERM and, unless it is ignored, SIGHUP.
    """
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set  # only the main thread may handle signals
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, *_not_ignored())}

    def handle(number: int, frame: FrameType | None) -> None:
        if asked.is_set():
            return
        asked.set()
        _asked.set()
        signal.signal(signal.SIGINT, before[signal.SIGINT])
        announce()

    for number in before:
        signal.signal(number, handle)
    try:
        yield asked.is_set
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)


def _not_ignored() -> list[signal.Signals]:
    return [number for number in ENDINGS if number == signal.SIGTERM or signal.getsignal(number) is not signal.SIG_IGN]


def outlive_repeated_signals() -> None:
    """For the command line: once a signal asked to stop, the same signal again does not end the process.

    The second may come after `graceful_stop` is left, while the command still tells how to resume.
    """

    def handle(number: int, frame: FrameType | None) -> None:
        if not _asked.is_set():
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)

    if threading.current_thread() is threading.main_thread():
        for number in _not_ignored():
            signal.signal(number, handle)


def ignore_signals() -> None:
    """For the last moments of a stopped command: Python gives signals back to the system before it ends."""
    if threading.current_thread() is threading.main_thread():
        for number in ENDINGS:
            signal.signal(number, signal.SIG_IGN)

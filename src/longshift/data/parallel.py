"""Work on many images in several threads (Pillow decodes and resizes without holding Python's lock)."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

In = TypeVar("In")
Out = TypeVar("Out")


def cores() -> int:
    """The processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


def ordered_map(
    function: Callable[[In], Out], items: Iterable[In], threads: int | None = None, ahead: int | None = None
) -> Iterator[Out]:
    """Like `map`, but in threads; results come in order, and at most `ahead` of them wait in memory."""
    threads = threads or cores()
    ahead = ahead or 16 * threads
    waiting: deque[Future[Out]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) >= ahead:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()

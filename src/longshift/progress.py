"""How library code reports progress without knowing how it is shown."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol


class Stage(str):
    """A note on long work that begins now and has no pieces to count: also a log shows it at once."""

    __slots__ = ()


class Tick(Protocol):
    """Called as work gets done."""

    def __call__(self, done: int = 1, note: str = "") -> None:
        """`done` more pieces are finished; `note` replaces the text next to the bar (see also `Stage`)."""
        ...


def silent(done: int = 1, note: str = "") -> None:
    """Shows nothing."""


# From a label and a number of pieces to a context manager that gives a `Tick`.
Bar = Callable[[str, int], AbstractContextManager[Tick]]


def no_bar(label: str, total: int) -> AbstractContextManager[Tick]:
    """Shows nothing."""
    return nullcontext(silent)

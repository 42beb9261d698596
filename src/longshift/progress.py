"""How library code tells of its progress without knowing who shows it."""

from __future__ import annotations

from typing import Protocol


class Tick(Protocol):
    """Called as work gets done."""

    def __call__(self, done: int = 1, note: str = "") -> None:
        """`done` more pieces are finished; `note` replaces the text beside the bar."""
        ...


def silent(done: int = 1, note: str = "") -> None:
    """Shows nothing."""

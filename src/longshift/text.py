"""Numbers and lists in sentences."""

from __future__ import annotations

from collections.abc import Iterable


def counted(number: int, word: str, plural: str = "") -> str:
    """A number with its noun: "1 run", "2 runs"; `plural` is for nouns that do not take an s."""
    return f"{number} {word if number == 1 else plural or word + 's'}"


def some(items: Iterable[str], limit: int = 5) -> str:
    """The first few of a list, for messages; odd characters are escaped."""
    listed = list(items)
    shown = ", ".join(ascii(item) if not item.isprintable() else item for item in listed[:limit])
    return shown + (f" and {len(listed) - limit} more" if len(listed) > limit else "")

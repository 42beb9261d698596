"""Numbers in sentences."""

from __future__ import annotations


def counted(number: int, word: str, plural: str = "") -> str:
    """Such as "1 run", "2 runs"; `plural` where it is not the word with an s."""
    return f"{number} {word if number == 1 else plural or word + 's'}"

"""The error for an option with an unknown value."""

from __future__ import annotations

from collections.abc import Sequence


def check(name: str, value: str, choices: Sequence[str]) -> None:
    """Raise ValueError unless the value is one of the choices."""
    if value not in choices:
        raise ValueError(f"Expected `{name}` to be one of {', '.join(choices)}, but got {value!r}.")

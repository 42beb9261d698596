"""TOML files and values."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from longshift.errors import UsageError
from longshift.files import MOST_TEXT, read_limited

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def read_toml(path: Path) -> dict[str, Any]:
    """A TOML file as a mapping; a missing or broken file is named."""
    try:
        return tomllib.loads(read_limited(path, MOST_TEXT).decode("utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:  # not UTF-8, not TOML, a number too long, nested too deeply
        raise UsageError(f"{path} is not valid TOML: {error}") from error


def parse_value(text: str) -> Any:
    """One value as TOML would read it (0.3, true, [1, 2]); anything else is plain text."""
    try:
        return tomllib.loads(f"v = {text}")["v"]
    except (ValueError, RecursionError):
        return text.strip()

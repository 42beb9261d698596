"""Texts that commands and pages show, kept as files in tests/golden: the only tests of words.

Make the facts by hand, so that the text is the same on every machine. After a change of words, write the files again
with `GOLDEN=write pytest ...` and read the difference.
"""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).parent / "golden"


def check_golden(name: str, text: str) -> None:
    """Compare a text with the file of this name."""
    file = FOLDER / name
    if os.environ.get("GOLDEN") == "write":
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8", newline="\n")
    assert text == file.read_text(encoding="utf-8"), f"tests/golden/{name} differs; see tests/golden.py"

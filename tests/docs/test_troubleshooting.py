"""The messages in docs/troubleshooting.md are those of the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
MESSAGES = [text for line in re.findall(r"^### \d+\. (.*)$", PAGE, re.M) for text in re.findall(r"`([^`]+)`", line)]


def source() -> str:
    """All code with the seams of long literals closed and what stands in braces replaced by the dots of the page."""
    code = "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "src").rglob("*.py")))
    code = re.sub(r"\"\s*\n\s*(?:\+ )?f?\"", "", code)
    return re.sub(r"(?:\{[^{}\n]*\}[ ]?)+", lambda m: "… " if m[0].endswith(" ") else "…", code)


@pytest.fixture(scope="module")
def code() -> str:
    return source()


def test_there_are_twenty() -> None:
    assert len(MESSAGES) >= 20


@pytest.mark.parametrize("message", MESSAGES)
def test_the_message_is_in_the_code(message: str, code: str) -> None:
    for piece in message.split("…"):
        words = piece.strip(" '?")
        if len(words) > 3:
            assert words in code, f"{words!r} of {message!r}"

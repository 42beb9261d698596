"""The code blocks of docs/guides/extend.md by section."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "extend.md"


def sections() -> dict[str, str]:
    """The text of each section by its title, in lower case."""
    parts = re.split(r"^## (.+)\n", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {title.lower(): text for title, text in zip(parts[1::2], parts[2::2], strict=True)}


def blocks(language: str) -> dict[str, str]:
    """The block in that language of each section that has one."""
    found = {title: re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL) for title, text in sections().items()}
    assert all(len(code) <= 1 for code in found.values())
    return {("entry point" if language == "toml" else title): code[0] for title, code in found.items() if code}

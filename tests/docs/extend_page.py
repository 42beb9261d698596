"""The code blocks of docs/guides/extend.md and extend-more.md by section."""

from __future__ import annotations

import re
from pathlib import Path

GUIDES = Path(__file__).parents[2] / "docs" / "guides"


def sections() -> dict[str, str]:
    """The text of each section by its title, in lower case."""
    texts = [(GUIDES / name).read_text(encoding="utf-8") for name in ("extend.md", "extend-more.md")]
    parts = [re.split(r"^## (.+)\n", text, flags=re.MULTILINE) for text in texts]
    return {title.lower(): text for part in parts for title, text in zip(part[1::2], part[2::2], strict=True)}


def blocks(language: str) -> dict[str, str]:
    """The block in that language of each section that has one."""
    found = {title: re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL) for title, text in sections().items()}
    assert all(len(code) <= 1 for code in found.values())
    return {("entry point" if language == "toml" else title): code[0] for title, code in found.items() if code}

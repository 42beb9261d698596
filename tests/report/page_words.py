"""The words of a page, without its figures and styles."""

from __future__ import annotations

import re
from html import unescape

BLOCKS = r"p|li|ul|h\d|tr|details|summary|section|div|figure|figcaption|dd|dt|table|nav|title"


def words_of(html: str) -> str:
    """A line for each block of text; numbers in figures are left out."""
    html = re.sub(r"<(svg|style|script)\b.*?</\1>", "", html, flags=re.DOTALL)
    html = re.sub(r"\s+", " ", html)
    html = re.sub(rf"</?({BLOCKS})\b[^>]*>", "\n", html)
    html = re.sub(r"</?t[dh]\b[^>]*>", " | ", html)
    text = unescape(re.sub(r"<[^>]+>", "", html))
    lines = (re.sub(r"( \|)+ ", " | ", " ".join(line.split())).strip("| ") for line in text.splitlines())
    return "\n".join(line for line in lines if line)

"""One name in two spellings: by case, by what separates words, or by how an accent is encoded."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence


def similar(names: Iterable[str]) -> list[list[str]]:
    """Groups of names that differ only by case, by spaces, dashes or underscores, or by how an accent is encoded."""
    groups: dict[str, list[str]] = defaultdict(list)
    for name in names:
        groups[_spaced(name).casefold()].append(name)
    return [group for group in groups.values() if len(group) > 1]


def differing(group: Sequence[str]) -> str:
    """Such as "differ only by case: 'A', 'a'", with the simplest that explains it."""
    if len({name.casefold() for name in group}) == 1:
        by = "case"
    elif len({unicodedata.normalize("NFC", name).casefold() for name in group}) == 1:
        by = "how an accent is encoded"
    else:
        by = "spaces, dashes or underscores"
    return f"differ only by {by}: {', '.join(map(repr, group))}"


def _spaced(name: str) -> str:
    """One way to write what separates words; a dash before a number may be a minus and stays."""
    plain = re.sub(r"(?<=[^\W\d_])-(?=[^\W\d_])", " ", unicodedata.normalize("NFC", name))
    return re.sub(r"[\s_]+", " ", plain).strip()

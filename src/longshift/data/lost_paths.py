"""The message for a path that does not exist: its first part that is missing, where, and similar names there."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from longshift.data.image_suffixes import is_hidden
from longshift.errors import unknown_name
from longshift.text import some

MOST = 1000  # names in a folder that are compared


def missing_path(path: str | os.PathLike[str], words: Sequence[str] = ()) -> str:
    """Such as "no file or folder 'hospitls' in /data; did you mean hospitals?".

    Args:
        path: The path; it must not exist.
        words: What can stand in place of a path. They are named if the path is a single word and no name is similar.
    """
    place = Path(path)
    known = [] if len(place.parts) > 1 else list(words)
    while not os.path.lexists(place.parent) and place.parent != place.parent.parent:
        place = place.parent
    try:
        there = [entry.name for entry in place.parent.iterdir() if not is_hidden(entry.name)]
    except OSError:
        there = []
    said = f"no file or folder {place.name!r} in {some([str(place.parent.resolve())])}"
    near = unknown_name("name", place.name, [*there[:MOST], *known]).removeprefix(f"unknown name {place.name!r}; ")
    if near.startswith("did you mean "):
        return f"{said}; {near}"
    return f"{said}; the built-in datasets are {' and '.join(known)}" if known else said

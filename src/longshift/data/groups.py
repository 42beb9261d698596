"""Groups of images that must not be split (of one patient, of one lesion), from a CSV beside the domains.

It is groups.csv, or any .csv there with a column for the group and a column that names the images.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import IO

from longshift.errors import LongshiftError

GROUPS_FILE = "groups.csv"
COLUMNS = ("group", "patient", "patient_id", "lesion", "lesion_id")  # the first of them that a file has counts
LARGEST = 1 << 28  # bytes; a larger file is no table of groups


def find_groups(tables: Mapping[str, bytes], paths: Sequence[str]) -> list[str] | None:
    """The group of each image, "" where none is named; None without a file of groups.

    Args:
        tables: Content of the .csv files beside the domains, by name.
        paths: Paths of the images. A file may name an image by its path, its name or its name without the suffix.

    Raises:
        LongshiftError: groups.csv has no column for groups, or names no image.
    """
    for name in sorted(tables, key=lambda name: (name != GROUPS_FILE, name)):
        found = _groups_in(tables[name].decode("utf-8-sig", "replace"), paths)
        if found is not None:
            return found
        if name == GROUPS_FILE:
            raise LongshiftError(
                f"{name}: expected a column with the path or name of an image and a column {' or '.join(COLUMNS)}, "
                "got none that fit."
            )
    return None


def _groups_in(text: str, paths: Sequence[str]) -> list[str] | None:
    mark = max(",;\t", key=text.partition("\n")[0].count)
    try:
        header, *rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=mark, skipinitialspace=True)) or [[]]
    except csv.Error:  # some other kind of table
        return None
    known = [name.strip().lower() for name in header]
    group = next((known.index(name) for name in COLUMNS if name in known), None)
    rows = [row for row in rows if len(row) == len(header)]
    if group is None or not rows:
        return None
    index = _places(paths)
    # The column that names the images is the one with most names of images, whatever it is called.
    image = max(range(len(header)), key=lambda column: sum(row[column] in index for row in rows))
    named = {index[row[image]]: row[group] for row in rows if row[image] in index}
    return [named.get(i, "") for i in range(len(paths))] if any(named.values()) else None


def _places(paths: Sequence[str]) -> dict[str, int]:
    """Which image each path, name and name without suffix means, where it is only one."""
    found: dict[str, set[int]] = {}
    for i, path in enumerate(paths):
        pure = PurePosixPath(path)
        for spelling in (path, pure.name, pure.stem):
            found.setdefault(spelling, set()).add(i)
    return {spelling: where.pop() for spelling, where in found.items() if len(where) == 1}


def read_groups(file: IO[bytes]) -> bytes:
    """The content of a .csv file; only its first line if that names no groups: other tables may be large."""
    with file:
        header = file.readline(1 << 16)
        names = re.split(r"[,;\t\s\"]+", header.decode("utf-8-sig", "replace").lower())
        return header + file.read() if set(COLUMNS) & set(names) else header


def is_table(path: str, size: int) -> bool:
    """Whether a file may hold groups, by its name and size."""
    return path.lower().endswith(".csv") and size <= LARGEST

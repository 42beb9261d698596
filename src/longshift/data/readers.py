"""One way to open a dataset, whatever it is kept in."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from longshift.data import (
    digits,
    file_names as names,
    folder_reader as tree,
    table_reader as table,
    vectors as embeddings,
)
from longshift.data.manifest import Manifest
from longshift.errors import LongshiftError, UsageError, unknown_name

TABLES = (".csv", ".parquet")


def load_dataset(source: str | Path, name: str | None = None) -> Manifest:
    """The manifest of "digits", a folder domain/class/image, the same in a .zip, a .csv or a .parquet.

    Vectors come from an .npz or a .parquet of embeddings (`longshift.data.vectors` says what is in them).

    `name` is what the dataset is called in reports; by default the name of the folder or file.
    """
    if isinstance(source, str) and source == digits.DIGITS:
        return digits.manifest(name or digits.DIGITS)
    return replace(_read(Path(source).expanduser(), name), given=str(source))


def _read(path: Path, name: str | None) -> Manifest:
    if not os.path.lexists(path):
        raise UsageError(_nothing_at(path))
    if path.is_dir():
        return tree.read_tree(path, name or path.resolve().name)
    suffix = path.suffix.lower()
    if suffix == ".zip":
        return tree.read_tree(path, name or path.stem)
    if embeddings.holds_vectors(path):
        return embeddings.read_embeddings(path, name or path.stem)
    if suffix in TABLES:
        return table.read_table(path, name or path.stem)
    known = ", ".join((".zip", *TABLES, ".npz"))
    raise LongshiftError(f"{path} is not a dataset: expected a folder, {known} or the word digits")


def _nothing_at(path: Path) -> str:
    """Say how far the path exists and what is there instead."""
    wanted, parent = path, path.parent
    while not parent.is_dir() and parent != parent.parent:
        path, parent = parent, parent.parent
    try:
        there = [entry.name for entry in parent.iterdir() if not names.is_hidden(entry.name)]
    except OSError:
        there = []
    near = unknown_name("file or folder", path.name, [*there[:1000], digits.DIGITS])
    if "did you mean" not in near:
        near = f"no file or folder {path.name!r}"
    made = ". Files of vectors are made by longshift embed" if wanted.suffix.lower() == ".npz" else ""
    return f"no dataset at {path}: in {parent.resolve()}: {near}{made}"

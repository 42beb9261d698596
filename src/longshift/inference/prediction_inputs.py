"""The files that a prediction is asked for: paths, folders and patterns."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from longshift.data import PACS_FEATURES, is_hidden, is_image, list_folder, missing_path, vector_file
from longshift.errors import LongshiftError

VECTOR_SUFFIXES = (".npz", ".parquet")


def expand_inputs(items: Iterable[str | os.PathLike[str]], vectors: bool = False) -> list[str]:
    """Files in order: a folder gives all images below it, a pattern (* ? []) its matches, the rest is taken as is.

    For a model of `vectors`, a folder gives its .npz and .parquet files, and `pacs-features` the embedded file.
    """
    found: list[str] = []
    for item in items:
        text = str(vector_file(item)) if vectors and item == PACS_FEATURES else os.fspath(item)
        if os.path.isdir(text):
            found.extend(_vector_files(text) if vectors else _image_files(text))
        elif not os.path.lexists(text) and glob.has_magic(text):
            matches = sorted(glob.glob(text, recursive=True))
            found.extend([match for match in matches if _is_input(match)] or [text])
        else:
            found.append(text)
    return list(dict.fromkeys(found))


def require_inputs(items: Sequence[str | os.PathLike[str]], vectors: bool = False) -> None:
    """Raise if none of the given inputs exists; patterns that match nothing are left to `expand_inputs`."""
    if not items or any(_may_exist(item, vectors) for item in items):
        return
    first = missing_path(items[0])
    if len(items) > 1:
        raise LongshiftError(f"Expected inputs that exist, got none of {len(items)}. For the first: {first}")
    raise LongshiftError(first)


def _may_exist(item: str | os.PathLike[str], vectors: bool) -> bool:
    text = os.fspath(item)
    return os.path.lexists(text) or glob.has_magic(text) or (vectors and item == PACS_FEATURES)


def _image_files(folder: str) -> list[str]:
    found = list_folder(Path(folder))
    return [os.path.join(folder, path) for path in sorted((*found.images, *found.others))]  # others: to say so


def _vector_files(folder: str) -> list[str]:
    return sorted(str(path) for path in Path(folder).rglob("*") if is_vectors(path.name) and path.is_file())


def is_vectors(path: str) -> bool:
    """Whether a file holds vectors, by its name."""
    return Path(path).suffix.lower() in VECTOR_SUFFIXES


def _is_input(path: str) -> bool:
    known = is_image(path) or is_vectors(path)
    return known and os.path.isfile(path) and not is_hidden(os.path.basename(path))


def listed_paths(inputs: Iterable[str | os.PathLike[str]]) -> list[str | os.PathLike[str]]:
    """The given paths as a list; a TypeError for anything else."""
    listed: list[str | os.PathLike[str]] = []
    if isinstance(inputs, (str, os.PathLike)) or not isinstance(inputs, Iterable):
        listed.append(inputs)
    else:
        listed.extend(inputs)
    wrong = [item for item in listed if not isinstance(item, (str, os.PathLike))]
    if wrong:
        raise TypeError(
            "Expected `inputs` to be paths, or an array: vectors (N, length) or images (N, height, width, 3) of type "
            f"uint8, got {type(wrong[0]).__name__}."
        )
    return listed

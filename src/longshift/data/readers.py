"""Open a dataset in any format: each format has a reader, chosen by the file's suffix."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from longshift.data import digits
from longshift.data.digits import DIGITS, EMBEDDED, PACS_FEATURES
from longshift.data.folder_layout import is_hidden
from longshift.data.folders import read_images, read_tree
from longshift.data.image_tables import (
    HUB,
    ImageSamples,
    download,
    holds_images,
    keep_images,
    read_image_table,
    table_files,
)
from longshift.data.manifest import Manifest
from longshift.data.tables import Choices, read_table, split_choices
from longshift.data.vectors import LABELED, is_vectors, read_embeddings, vector_file
from longshift.data.version import cache_folder
from longshift.errors import LongshiftError, UsageError, unknown_name
from longshift.io import require_regular
from longshift.registry import Registry
from longshift.text import some

Reader = Callable[[Path, str], Manifest]  # (file, name of the dataset)

READERS = Registry[Reader]("format of a dataset")


def register_reader(suffix: str) -> Callable[[Reader], Reader]:
    """Decorate a function that reads datasets from files with this suffix.

    Args:
        suffix: The suffix with its dot, such as ".jsonl".

    Returns:
        The decorator. The function gets the path of the file and the name of the dataset and returns a `Manifest`,
        whose `root` is the folder or .zip that holds the images.

    Raises:
        LongshiftError: If another reader has this suffix.

    Example:
        >>> @register_reader(".list")
        ... def read_list(path, name):
        ...     rows = [Row(*line.split()) for line in path.read_text().splitlines()]  # domain, class, path
        ...     return Manifest.from_rows(name, path.parent, rows)
    """
    if not suffix.startswith("."):
        raise UsageError(f"Expected a suffix such as '.jsonl', got {suffix!r}.")

    def add(reader: Reader) -> Reader:
        READERS.add(suffix.lower(), reader)
        return reader

    return add


def _read_parquet(path: Path, name: str, choices: Choices | None = None, needs: Sequence[str] = LABELED) -> Manifest:
    choices = choices or {}
    if holds_images(path, choices):
        return read_image_table(path, [""], name, choices, needs)
    return (read_embeddings if is_vectors(path, choices, needs) else read_table)(path, name, choices, needs)


TABLES: dict[str, Callable[[Path, str, Choices, Sequence[str]], Manifest]] = {
    ".csv": read_table, ".parquet": _read_parquet, ".npz": read_embeddings,
}  # fmt: skip
register_reader(".zip")(read_tree)
register_reader(".csv")(read_table)
register_reader(".parquet")(_read_parquet)
register_reader(".npz")(read_embeddings)


def load_dataset(
    source: str | Path | ImageSamples, name: str | None = None, needs: Sequence[str] = LABELED
) -> Manifest:
    """List the samples of a dataset.

    Args:
        source: A folder `domain/class/image`, the same in a .zip, a .csv or .parquet with the columns path, label and
            domain, images in a .parquet, in a folder of Hugging Face's `save_to_disk` or on the hub ("hf://owner/name"),
            vectors in an .npz or .parquet (see `longshift.data.vectors`), a file of a registered format, or
            "digits" or "pacs-features" for an embedded dataset. Tables take "#label=COLUMN,site=COLUMN" behind the
            path. Or a PyTorch `Dataset` of (image, label, domain); its images are kept in $LONGSHIFT_CACHE.
        name: Name of the dataset in reports; by default the name of the folder or file.
        needs: Which of label and domain every sample must have. Without label, folders and archives are read at any
            depth; what is missing is "".

    Returns:
        The manifest: path, class and domain of each sample.

    Raises:
        LongshiftError: If there is no dataset, or it cannot be read.

    Example:
        >>> load_dataset("digits").domain_names
        ('chalk', 'ink', 'neon', 'stamp')
    """
    if isinstance(source, str) and source == DIGITS:
        return digits.manifest(name or DIGITS)
    if isinstance(source, str) and source == PACS_FEATURES:
        return replace(read_embeddings(vector_file(source), name or PACS_FEATURES), given=source)
    if not isinstance(source, (str, os.PathLike)):
        return load_dataset(keep_images(source, cache_folder() / "datasets"), name or type(source).__name__)
    place, choices = split_choices(source)
    if place.startswith(HUB):
        root = download(place)
        files = sorted(file.relative_to(root).as_posix() for file in root.rglob("*.parquet"))
        return replace(read_image_table(root, files, name or Path(place).name, choices, needs), given=str(source))
    return replace(_read(Path(place).expanduser(), name, choices, needs), given=str(source))


def require_dataset(source: str | Path) -> None:
    """Raise if there is nothing at the path of a dataset; reads nothing."""
    path = Path(split_choices(source)[0]).expanduser()
    if source not in EMBEDDED and not str(source).startswith(HUB) and not os.path.lexists(path):
        raise UsageError(_nothing_at(path))


def _read(path: Path, name: str | None, choices: Choices, needs: Sequence[str]) -> Manifest:
    if not os.path.lexists(path):
        raise UsageError(_nothing_at(path))
    if path.is_dir() and (files := table_files(path)):
        return read_image_table(path, files, name or path.resolve().name, choices, needs)
    suffix = path.suffix.lower()
    if choices and suffix not in TABLES:
        raise UsageError(f"{path} is not a table, so its columns cannot be chosen.")
    if path.is_dir():
        return (read_tree if "label" in needs else read_images)(path, name or path.resolve().name)
    try:
        require_regular(path)
    except OSError as error:
        raise LongshiftError(f"Cannot read {path}: {error.strerror}.") from error
    if suffix in TABLES:
        return TABLES[suffix](path, name or path.stem, choices, needs)
    if suffix == ".zip" and "label" not in needs:
        return read_images(path, name or path.stem)
    if suffix not in READERS:
        raise LongshiftError(
            f"Expected a folder, {', '.join(READERS)} or the word {' or '.join(EMBEDDED)}, got {path}. If a plugin "
            "reads this format, name its file: longshift --plugin FILE.py ..."
        )
    return READERS[suffix](path, name or path.stem)


def _nothing_at(path: Path) -> str:
    """The message for a dataset that does not exist."""
    if path.suffix.lower() == ".npz":
        said = missing_path(path)
        return f"{said}{'' if said.endswith('?') else '.'} Files of vectors are made by longshift embed"
    return missing_path(path, EMBEDDED)


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

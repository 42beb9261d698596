"""Samples of a dataset by name: the path of a file, or DATASET#PATH inside an archive or a table.

new_site.zip#north/1.jpg    scans.parquet#000012    scans.parquet#image=photo#000012    folder#data.arrow/000003
"""

from __future__ import annotations

import os
import threading
from contextlib import ExitStack
from pathlib import Path

from longshift.data.image_tables import HUB, table_files
from longshift.data.images import MOST_BYTES, ImageSource, open_source
from longshift.data.manifest import Manifest
from longshift.data.readers import READERS, load_dataset
from longshift.data.tables import split_choices
from longshift.io import read_limited

MARK = "#"


def split_sample(name: str) -> tuple[str, str]:
    """The dataset and the path in it; the dataset of a plain file is "".

    >>> split_sample("scans.parquet#image=photo#000012"), split_sample("new_site/1.jpg")
    (('scans.parquet#image=photo', '000012'), ('', 'new_site/1.jpg'))
    """
    if MARK not in name or os.path.lexists(name) or split_choices(name)[1]:
        return "", name
    start, _, inside = name.partition(MARK)
    if start.lower().endswith(".zip"):
        return start, inside
    start, _, inside = name.rpartition(MARK)
    return start, inside


def sample_file(name: str) -> str:
    """The file that a sample is in, or the file itself."""
    return split_choices(split_sample(name)[0] or name)[0]


def is_dataset(text: str) -> bool:
    """Whether a path is a dataset by itself: an archive, a table or a Hugging Face dataset, not a plain folder."""
    place, choices = split_choices(text)
    path = Path(place)
    known = path.suffix.lower() in READERS and path.is_file()
    return bool(choices) or place.startswith(HUB) or known or (path.is_dir() and bool(table_files(path)))


def list_samples(dataset: str) -> list[str]:
    """The names of all images of a dataset, which may have no classes."""
    manifest = load_dataset(dataset, needs=())
    return [] if manifest.vectors else sample_names(dataset, manifest)


def sample_names(dataset: str, manifest: Manifest) -> list[str]:
    """The names of the samples of a dataset, in the order of its manifest."""
    if manifest.vectors:
        return [f"{dataset}{MARK}{path}" for path in manifest.paths]
    if manifest.root is not None and manifest.root.is_dir() and not manifest.image_column:
        return [os.path.join(manifest.root, path) for path in manifest.paths]
    return [f"{dataset}{MARK}{manifest.prefix}{path}" for path in manifest.paths]


class SampleReader:
    """Reads the bytes of samples by name, from several threads; datasets stay open until it is closed."""

    def __init__(self) -> None:
        self._sources: dict[str, ImageSource] = {}
        self._open, self._lock = ExitStack(), threading.Lock()

    def __enter__(self) -> SampleReader:
        """The reader itself."""
        return self

    def __exit__(self, *about: object) -> None:
        """Close all datasets."""
        self._open.close()

    def read(self, name: str) -> bytes:
        """All bytes of a sample; raises BadImage for one of a dataset, OSError for a file."""
        dataset, path = split_sample(name)
        if not dataset:
            return read_limited(name, MOST_BYTES)
        with self._lock:
            if dataset not in self._sources:
                self._sources[dataset] = self._open.enter_context(open_source(load_dataset(dataset, needs=())))
        return self._sources[dataset].read(path)

"""Where the bytes of a manifest's images come from: a folder or a .zip."""

from __future__ import annotations

import hashlib
import os
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from longshift.data.folder_reader import open_zip
from longshift.data.image_decoding import BadImage
from longshift.data.manifest import Manifest
from longshift.errors import LongshiftError
from longshift.io import read_limited

MOST_BYTES = 1 << 28  # of one image file


class ImageSource(Protocol):
    """Reads images by their path in the manifest; safe to use from several threads."""

    def read(self, path: str) -> bytes:
        """All bytes of an image; BadImage if they cannot be read."""
        ...

    def stamp(self, path: str) -> str:
        """A short text that changes when the image does, found without reading it."""
        ...


class FolderSource:
    """Files below a folder; a change shows in their size or time."""

    def __init__(self, root: Path) -> None:
        self.root = os.fspath(root)

    def read(self, path: str) -> bytes:
        """All bytes of a file."""
        try:
            return read_limited(os.path.join(self.root, path), MOST_BYTES)
        except OSError as error:
            raise BadImage("unreadable", error.strerror or str(error)) from error

    def stamp(self, path: str) -> str:
        """Size and times of the last change."""
        try:
            status = os.stat(os.path.join(self.root, path))
        except OSError as error:
            return f"missing: {error.strerror}"
        # The last: a copy may keep the time of its original, but nothing can set this one. On Windows it is the time of
        # creation, so a change that keeps size and time is not seen there.
        return f"{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"


class ZipSource:
    """Entries of an archive, read in place; a change shows in their size or checksum."""

    def __init__(self, archive: zipfile.ZipFile, prefix: str) -> None:
        self.archive, self.prefix = archive, prefix
        # Python 3.12 and 3.13 skip the extra field of an entry relative to where another thread reads. A lock is also
        # faster than a handle per thread: reading is 1 % of decoding, and each handle would read the index again.
        self.lock = threading.Lock()

    def read(self, path: str) -> bytes:
        """All bytes of an entry, its checksum tested."""
        try:
            entry = self.archive.getinfo(self.prefix + path)
            if entry.file_size > MOST_BYTES:
                size = f"{entry.file_size / 2**20:.0f} MiB"
                raise BadImage("decompression bomb", f"{size} when unpacked, at most {MOST_BYTES >> 20} MiB are read")
            with self.lock:
                return self.archive.read(entry)  # never more than the size that was just compared
        except BadImage:
            raise
        except Exception as error:  # zipfile raises many kinds; zlib, bz2 and lzma have exceptions of their own
            raise BadImage("unreadable", f"in the archive: {error}") from error

    def stamp(self, path: str) -> str:
        """Size and checksum."""
        try:
            entry = self.archive.getinfo(self.prefix + path)
        except KeyError:
            return "missing"
        return f"{entry.file_size} {entry.CRC:08x}"


@contextmanager
def open_source(manifest: Manifest) -> Iterator[ImageSource]:
    """Open the folder or archive of a manifest."""
    if manifest.root is None:
        raise LongshiftError(f"the dataset {manifest.name} has no files")
    if manifest.root.is_dir():
        yield FolderSource(manifest.root)
    else:
        with open_zip(manifest.root) as archive:
            yield ZipSource(archive, manifest.prefix)


def identity(manifest: Manifest, source: ImageSource) -> str:
    """A hash that changes when any image of the manifest changes, found without reading images."""
    digest = hashlib.sha256(manifest.fingerprint().encode())
    for path in manifest.paths:
        digest.update(f"{path}\0{source.stamp(path)}\0".encode())
    return digest.hexdigest()

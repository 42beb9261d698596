"""Which version of a dataset lies on the disk: a hash of the content of its files, not of their place or time.

Names, sizes and time stamps are looked at first. Files are read only if those are new; the hashes are then kept in

    $LONGSHIFT_CACHE/versions/STAMPS-VERSION.json   SHA-256 of each file by its path

A folder, the same folder elsewhere and a .zip of it are one version.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from longshift.array_types import IntArray
from longshift.data.images import BadImage, open_source
from longshift.data.manifest import Manifest
from longshift.data.parallel import ordered_map
from longshift.data.vectors import ordered_vectors
from longshift.errors import LongshiftError
from longshift.io import write_text
from longshift.progress import Bar, no_bar
from longshift.text import counted, some

VERSIONS = "versions"
MOST_LISTS = 200  # that are kept
MANY = 1000  # files take long enough to show progress
SHA256 = 64  # characters; a file that cannot be read has a word instead
_NAME = 24  # characters of a hash in the name of a file


class DataChanged(LongshiftError):
    """The data are not those that a run was started on."""


def cache_folder(given: Path | None = None) -> Path:
    """The folder that is given; by default $LONGSHIFT_CACHE, or ~/.cache/longshift."""
    if given is not None:
        return Path(given)
    default = os.environ.get("LONGSHIFT_CACHE")
    return Path(default).expanduser() if default else Path.home() / ".cache" / "longshift"


def data_version(manifest: Manifest, cache: Path | None = None, bar: Bar = no_bar) -> str:
    """SHA-256 over the manifest and the content of every file; "" for the embedded digits, which never change.

    Args:
        manifest: The dataset.
        cache: Folder that keeps the hashes of files; by default $LONGSHIFT_CACHE.
        bar: Shows the progress of reading many files.
    """
    if manifest.root is None:
        return ""
    if manifest.vectors:
        return ordered_vectors(manifest)[1]
    return _combined(manifest, content_hashes(manifest, cache, bar))


def _combined(manifest: Manifest, hashes: Sequence[str]) -> str:
    return hashlib.sha256("".join(f"{line}\n" for line in (manifest.fingerprint(), *hashes)).encode()).hexdigest()


def content_hashes(manifest: Manifest, cache: Path | None = None, bar: Bar = no_bar) -> list[str]:
    """A hash of the content of each sample; not a SHA-256 for files that cannot be read. Files are read once."""
    if manifest.vectors:
        return [hashlib.sha256(row.tobytes()).hexdigest() for row in ordered_vectors(manifest)[0]]
    folder = cache_folder(cache) / VERSIONS
    with open_source(manifest) as source:
        stamps = hashlib.sha256(manifest.fingerprint().encode())
        for path in manifest.paths:
            stamps.update(f"{path}\0{source.stamp(path)}\0".encode())
        start = stamps.hexdigest()[:_NAME]
        for file in folder.glob(f"{start}-*.json"):
            if len(known := _read(file)) == len(manifest):
                return list(known.values())

        def look(path: str) -> str:
            try:
                return hashlib.sha256(source.read(path)).hexdigest()
            except BadImage as bad:  # `data verify` and the decoder report it
                return bad.kind

        hashes: list[str] = []
        show = bar if len(manifest) >= MANY else no_bar
        with show(f"hashing {manifest.name}", len(manifest)) as tick:
            for found in ordered_map(look, manifest.paths):
                hashes.append(found)
                tick()
    with contextlib.suppress(LongshiftError, OSError):  # only a cache: it may be read-only
        text = json.dumps(dict(zip(manifest.paths, hashes, strict=True)))
        write_text(folder / f"{start}-{_combined(manifest, hashes)[:_NAME]}.json", text)
        for old in sorted(folder.iterdir(), key=os.path.getmtime)[:-MOST_LISTS]:
            old.unlink(missing_ok=True)
    return hashes


def _read(file: Path) -> dict[str, str]:
    """The hash of each path."""
    try:
        return dict(json.loads(file.read_bytes()))
    except (OSError, ValueError, TypeError):
        return {}


def short_version(version: str) -> str:
    """The first characters of a version, as messages name it."""
    return version[:12]


def what_changed(before: str, now: str, cache: Path | None = None) -> str:
    """The difference between two versions, in words; short where the list of one is no longer in the cache."""
    folder = cache_folder(cache) / VERSIONS
    files = [next(folder.glob(f"*-{version[:_NAME]}.json"), None) for version in (before, now)]
    old, new = (_read(file) if file else {} for file in files)
    if not old or not new:
        return f"version {short_version(before)} before, {short_version(now)} now"
    parts = {
        "changed": [path for path, found in new.items() if path in old and old[path] != found],
        "removed": [path for path in old if path not in new],
        "added": [path for path in new if path not in old],
    }
    listed = (f"{counted(len(paths), 'file')} {word} ({some(paths, 3)})" for word, paths in parts.items() if paths)
    return "; ".join(listed) or "other classes, domains or splits of the same files"


@functools.lru_cache(maxsize=4)  # a manifest does not change, and the splits of many runs ask for its copies
def find_copies(manifest: Manifest, cache: Path | None = None) -> IntArray | None:
    """The first sample with the same content, domain and class as each sample (N,); None if there are no copies."""
    if manifest.root is None:
        return None
    first: dict[tuple[str, int, int], int] = {}
    groups = np.arange(len(manifest), dtype=np.int64)
    cells = zip(content_hashes(manifest, cache), manifest.domains.tolist(), manifest.labels.tolist(), strict=True)
    for index, (found, domain, label) in enumerate(cells):
        if len(found) == SHA256:
            groups[index] = first.setdefault((found, domain, label), index)
    return groups if (groups != np.arange(len(groups))).any() else None

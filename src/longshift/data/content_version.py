"""Which version of a dataset lies on the disk: a hash of the content of its files, not of their place or time.

Names, sizes and time stamps are looked at first. Files are read only if those are new; the hashes are then kept in

    $LONGSHIFT_CACHE/versions/STAMPS-VERSION.tsv   SHA-256 and path of each file

A folder, the same folder elsewhere and a .zip of it are one version.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from longshift.data.image_bytes import ImageSource, identity, open_source
from longshift.data.image_decoding import BadImage
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
    folder = cache_folder(cache) / VERSIONS
    if manifest.vectors:
        return _version_of_vectors(manifest, folder)
    with open_source(manifest) as source:
        stamps = identity(manifest, source)
        known = _known(manifest, folder, stamps)
        return _combined(manifest, known or _keep(manifest, folder, stamps, _hash_files(manifest, source, bar)))


def content_hashes(manifest: Manifest, cache: Path | None = None) -> list[str]:
    """A hash of the content of each sample; not a SHA-256 for files that cannot be read. Files are read once."""
    if manifest.vectors:
        return [hashlib.sha256(row.tobytes()).hexdigest() for row in ordered_vectors(manifest)[0]]
    folder = cache_folder(cache) / VERSIONS
    with open_source(manifest) as source:
        stamps = identity(manifest, source)
        known = _known(manifest, folder, stamps)
        return known or _keep(manifest, folder, stamps, _hash_files(manifest, source))


def changed_silently(manifest: Manifest, hashes: Sequence[str], cache: Path | None = None) -> str:
    """How the content differs from the recorded one though sizes and time stamps do not, in words; "" if it is equal.

    Args:
        manifest: The dataset.
        hashes: SHA-256 of each image file as it is now (`content_of`); vectors, which have none, are read here.
        cache: Folder that keeps the hashes of files; by default $LONGSHIFT_CACHE.
    """
    if manifest.root is None:
        return ""
    folder = cache_folder(cache) / VERSIONS
    if manifest.vectors:
        before = _known_vectors(folder, _stamps_of_vectors(manifest))
        now = _version_of_vectors(manifest, folder, fresh=True) if before else ""
    else:
        with open_source(manifest) as source:
            stamps = identity(manifest, source)
        known = _known(manifest, folder, stamps)
        before = _combined(manifest, known) if known else ""
        now = _combined(manifest, _keep(manifest, folder, stamps, list(hashes))) if known else ""
    return "" if now == before else what_changed(before, now, cache)


def content_of(data: bytes | BadImage) -> str:
    """What a file counts as in a version: the SHA-256 of its bytes, or why it cannot be read."""
    return data.kind if isinstance(data, BadImage) else hashlib.sha256(data).hexdigest()


def _stamps_of_vectors(manifest: Manifest) -> str:
    assert manifest.root is not None
    status = manifest.root.stat()
    text = f"{manifest.fingerprint()} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"
    return hashlib.sha256(text.encode()).hexdigest()


def _known_vectors(folder: Path, stamps: str) -> str:
    for file in _newest_first(folder, stamps):
        lines = _lines(file)
        if len(lines) == 1 and file.name == _file_name(stamps, lines[0]):
            _mark_used(file)
            return lines[0]
    return ""


def _newest_first(folder: Path, stamps: str) -> list[Path]:
    """Lists of files with these stamps: there are two if content changed and stamps did not."""
    return sorted(folder.glob(f"{stamps[:_NAME]}-*.tsv"), key=_last_use, reverse=True)


def _last_use(file: Path) -> int:
    try:
        return file.stat().st_mtime_ns
    except OSError:  # another process has just removed it
        return 0


def _mark_used(file: Path) -> None:
    """Lists that are not used for the longest time are removed first."""
    with contextlib.suppress(OSError):  # the cache may be read-only
        os.utime(file)


def _version_of_vectors(manifest: Manifest, folder: Path, fresh: bool = False) -> str:
    stamps = _stamps_of_vectors(manifest)
    if not fresh and (known := _known_vectors(folder, stamps)):
        return known
    version = ordered_vectors(manifest)[1]
    _write(folder / _file_name(stamps, version), [version])
    return version


def _hash_files(manifest: Manifest, source: ImageSource, bar: Bar = no_bar) -> list[str]:
    def look(path: str) -> str:
        try:
            return content_of(source.read(path))
        except BadImage as bad:  # `data verify` and the decoder report it
            return content_of(bad)

    show = bar if len(manifest) >= MANY else no_bar
    hashes: list[str] = []
    with show(f"hashing {manifest.name}", len(manifest)) as tick:
        for found in ordered_map(look, manifest.paths):
            hashes.append(found)
            tick()
    return hashes


def _combined(manifest: Manifest, hashes: Iterable[str]) -> str:
    digest = hashlib.sha256(f"{manifest.fingerprint()}\n".encode())
    for found in hashes:
        digest.update(f"{found}\n".encode())
    return digest.hexdigest()


def short_version(version: str) -> str:
    """The first characters of a version, as messages name it."""
    return version[:12]


def _tag(version: str) -> str:
    return version[:_NAME]


def _known(manifest: Manifest, folder: Path, stamps: str) -> list[str]:
    """The hashes that files with these stamps had; none if they are not known. A damaged list counts as unknown."""
    for file in _newest_first(folder, stamps):
        hashes = _read(file)
        if list(hashes) == list(map(_in_a_line, manifest.paths)):
            found = list(hashes.values())
            if file.name == _file_name(stamps, _combined(manifest, found)):
                _mark_used(file)
                return found
    return []


def _keep(manifest: Manifest, folder: Path, stamps: str, hashes: list[str]) -> list[str]:
    lines = [f"{found}\t{_in_a_line(path)}" for found, path in zip(hashes, manifest.paths, strict=True)]
    _write(folder / _file_name(stamps, _combined(manifest, hashes)), lines)
    return hashes


def _file_name(stamps: str, version: str) -> str:
    return f"{stamps[:_NAME]}-{_tag(version)}.tsv"


def _write(file: Path, lines: Sequence[str]) -> None:
    with contextlib.suppress(LongshiftError, OSError):  # only a cache: it may be read-only
        write_text(file, "".join(f"{line}\n" for line in lines))
        kept = sorted(file.parent.glob("*.tsv"), key=_last_use)
        for old in kept[:-MOST_LISTS]:
            old.unlink(missing_ok=True)


def _lines(file: Path) -> list[str]:
    try:
        return file.read_bytes().decode("utf-8").split("\n")[:-1]
    except (OSError, ValueError):
        return []


def _read(file: Path) -> dict[str, str]:
    """The hash of each path; none for vectors, whose list has only the version."""
    pairs = (line.partition("\t") for line in _lines(file))
    return {path: found for found, tab, path in pairs if tab}


def _in_a_line(path: str) -> str:
    return ascii(path) if "\n" in path else path


def what_changed(before: str, now: str, cache: Path | None = None) -> str:
    """The difference between two versions, in words; short where the list of one is no longer in the cache."""
    folder = cache_folder(cache) / VERSIONS
    old, new = _list_of(folder, before), _list_of(folder, now)
    if not old or not new:
        return f"version {short_version(before)} before, {short_version(now)} now"
    changed = [path for path, found in new.items() if path in old and old[path] != found]
    parts = [
        _listed(changed, "changed"),
        _listed([path for path in old if path not in new], "removed"),
        _listed([path for path in new if path not in old], "added"),
    ]
    return "; ".join(filter(None, parts)) or "other classes, domains or splits of the same files"


def _list_of(folder: Path, version: str) -> Mapping[str, str]:
    return next((found for file in sorted(folder.glob(f"*-{_tag(version)}.tsv")) if (found := _read(file))), {})


def _listed(paths: Sequence[str], word: str) -> str:
    return f"{counted(len(paths), 'file')} {word} ({some(paths, 3)})" if paths else ""

"""Reads datasets laid out as domain/class/image, in a folder or inside a .zip."""

from __future__ import annotations

import os
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from longshift.data.folder_layout import IMAGE_SUFFIXES, PARTS, is_hidden, is_image, is_other_format, wrong_depth
from longshift.data.groups import find_groups, is_table, read_groups
from longshift.data.manifest import Manifest, Row
from longshift.errors import LongshiftError
from longshift.text import agree, counted, some

LAYOUT = "domain/class/image.jpg"


@dataclass(frozen=True)
class Listing:
    """The image files and the folders below a root, as "/"-separated relative paths."""

    images: tuple[str, ...]
    folders: tuple[str, ...]
    others: tuple[str, ...] = ()  # pictures of formats that are not read


def list_folder(root: Path) -> Listing:
    """Walk a folder; links are followed, a link back to an own parent is an error."""
    images: list[str] = []
    folders: list[str] = []
    others: list[str] = []
    for relative, is_folder in _walk(os.fspath(root), "", frozenset()):
        (folders if is_folder else images if is_image(relative) else others).append(relative)
    odd = [path for path in (*folders, *images, *others) if re.search("[\ud800-\udfff]", path)]
    if odd:
        raise LongshiftError(
            f"{counted(len(odd), 'name')} in {root} {agree(len(odd), 'is', 'are')} not UTF-8: {some(odd)}. Rename "
            f"{agree(len(odd), 'it', 'them')} (for example with "
            f"`convmv -r -f latin1 -t utf8 --notest FOLDER`)."
        )
    return Listing(tuple(images), tuple(folders), tuple(others))


def _walk(folder: str, relative: str, parents: frozenset[tuple[int, int]]) -> Iterator[tuple[str, bool]]:
    try:
        status = os.stat(folder)
        here = (status.st_dev, status.st_ino)
        if here in parents:
            raise LongshiftError(f"symlink loop: {folder} links back to a folder that contains it. Remove the link.")
        with os.scandir(folder) as entries:
            for entry in entries:
                if is_hidden(entry.name):
                    continue
                path = f"{relative}{entry.name}"
                if entry.is_dir():
                    yield path, True
                    yield from _walk(entry.path, path + "/", parents | {here})
                elif is_image(entry.name) or is_other_format(entry.name):
                    yield path, False  # also a broken link: `data verify` reports it as unreadable
    except OSError as error:
        raise LongshiftError(f"cannot read {error.filename or folder}: {error.strerror or error}") from error


def list_zip(root: Path) -> Listing:
    """List the entries of an archive; entries that point outside it are refused."""
    with open_zip(root) as archive:
        entries = archive.infolist()
    names = [entry.filename for entry in entries]
    outside = [name for name in names if _points_outside(name)]
    if outside:
        raise LongshiftError(f"{root} has {len(outside)} entries that point outside it: {some(outside)}. Repack it.")
    if any(entry.flag_bits & 1 for entry in entries):
        raise LongshiftError(f"{root} is encrypted. Unpack it and give the folder.")
    folders: set[str] = set()
    images: list[str] = []
    others: list[str] = []
    for name in names:
        parts = name.split("/")
        if any(is_hidden(part) for part in parts if part):
            continue
        folders.update("/".join(parts[:depth]) for depth in range(1, len(parts)))
        if is_image(parts[-1]):
            images.append(name)
        elif is_other_format(parts[-1]):
            others.append(name)
    twice = sorted(name for name, times in Counter(images).items() if times > 1)
    if twice:
        raise LongshiftError(f"{root} has {counted(len(twice), 'name')} more than once: {some(twice)}. Repack it.")
    return Listing(tuple(images), tuple(folders), tuple(others))


def open_zip(root: Path) -> zipfile.ZipFile:
    """Open an archive for reading, or say why not."""
    try:
        return zipfile.ZipFile(root)
    except (OSError, zipfile.BadZipFile, NotImplementedError) as error:
        raise LongshiftError(f"cannot read the archive {root}: {error}") from error


def _points_outside(name: str) -> bool:
    return ".." in re.split(r"[/\\]", name) or name.startswith(("/", "\\")) or re.match(r"[A-Za-z]:", name) is not None


def read_tree(root: Path, name: str) -> Manifest:
    """The manifest of a folder or .zip laid out as domain/class/image.

    A folder that wraps everything (`PACS/photo/dog/1.jpg`) is skipped, so that an archive and the folder it
    unpacks to are the same dataset. So is a level with one folder name everywhere (`north/images/dog/1.jpg`).
    """
    zipped = not root.is_dir()
    listing = list_zip(root) if zipped else list_folder(root)
    if not listing.images:
        raise LongshiftError(
            f"no images in {root}: expected {LAYOUT} with a suffix of {' '.join(sorted(IMAGE_SUFFIXES))}"
            + (f"; got {some(sorted(listing.others), 3)}: convert them" if listing.others else "")
        )
    prefix = _wrapper(listing.images)
    images = [path.removeprefix(prefix) for path in listing.images]
    domain, label, depth = _levels(images)
    rows, misplaced = [], []
    for path in images:
        parts = path.split("/")
        if len(parts) == depth:
            rows.append(Row(parts[domain], parts[label], path))
        else:
            misplaced.append(path)
    if not rows:
        raise LongshiftError(
            f"expected images at {LAYOUT} in {root}, got {counted(len(misplaced), 'image')} elsewhere: "
            f"{some(sorted(misplaced), 3)}.\nLikely: {wrong_depth(root if zipped else root / prefix, images)}."
        )
    groups = find_groups(_tables_beside(root, prefix), [row.path for row in rows])
    if groups:
        rows = [row._replace(group=group) for row, group in zip(rows, groups, strict=True)]
    filled = {f"{row.domain}/{row.label}" for row in rows}
    within = (path.removeprefix(prefix).split("/") for path in listing.folders if path.startswith(prefix))
    every = {f"{parts[domain]}/{parts[label]}" for parts in within if len(parts) == label + 1}
    shown = rows[0].path.split("/")
    return replace(
        Manifest.from_rows(
            name=name,
            root=root if zipped else root / prefix,
            rows=rows,
            prefix=prefix if zipped else "",
            empty_folders=sorted(every - filled),
            misplaced=sorted(misplaced),
            others=sorted(path.removeprefix(prefix) for path in listing.others),
        ),
        skipped_levels=tuple(shown[k] for k in range(depth - 1) if k not in (domain, label)),
    )


def read_images(root: Path, name: str) -> Manifest:
    """All images of a folder or .zip at any depth, without classes and domains."""
    listing = list_folder(root) if root.is_dir() else list_zip(root)
    if not (listing.images or listing.others):
        raise LongshiftError(f"no images in {root}")
    return Manifest.from_rows(name, root, [Row("", "", path) for path in (*listing.images, *listing.others)])


def _tables_beside(root: Path, prefix: str) -> dict[str, bytes]:
    """The .csv files beside the domains, by name."""
    try:
        if root.is_dir():
            files = (file for file in (root / prefix).iterdir() if not is_hidden(file.name) and file.is_file())
            found = [file for file in files if is_table(file.name, file.stat().st_size)]
            return {file.name: read_groups(file.open("rb")) for file in found}
        with open_zip(root) as archive:
            names = {entry.filename.removeprefix(prefix): entry for entry in archive.infolist()}
            beside = {name: entry for name, entry in names.items() if "/" not in name and not is_hidden(name)}
            tables = {name: entry for name, entry in beside.items() if is_table(name, entry.file_size)}
            return {name: read_groups(archive.open(entry)) for name, entry in tables.items()}
    except (OSError, zipfile.BadZipFile, NotImplementedError, zlib.error) as error:
        raise LongshiftError(f"cannot read the .csv files in {root}: {error}") from error


def _levels(images: list[str]) -> tuple[int, int, int]:
    """Which folders of a path are domain and class, and how many parts paths have: 0, 1 and 3 in the usual layout.

    Where all images lie deeper, levels with one folder name everywhere are skipped.
    """
    split = [path.split("/") for path in images]
    depth = len(split[0])
    splits = PARTS.issuperset(parts[0].lower() for parts in split)  # train/north/dog/1.jpg is not a layout of domains
    if depth <= 3 or splits or any(len(parts) != depth for parts in split):
        return 0, 1, 3
    left = [k for k in range(depth - 1) if k == 0 or len({parts[k] for parts in split}) > 1]
    # With more levels of one name than there are levels too many, nobody can tell which of them is the class.
    return (left[0], left[1], depth) if len(left) == 2 else (0, 1, 3)


def _wrapper(images: tuple[str, ...]) -> str:
    """The folder(s) around a dataset: "" where some image is at domain/class/image already."""
    prefix = ""
    split = [parts for parts in (path.split("/") for path in images) if len(parts) > 1]
    while (
        any(len(parts) > 3 for parts in split)
        and not any(len(parts) == 3 for parts in split)
        and len({parts[0] for parts in split}) == 1
    ):
        prefix += split[0][0] + "/"
        split = [parts[1:] for parts in split if len(parts) > 2]
    return prefix

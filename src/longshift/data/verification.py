"""Looks at every image of a dataset and lists all that is wrong with it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from longshift.data.folder_layout import differing, similar
from longshift.data.images import BRIGHTEST, BadImage, decode, open_source
from longshift.data.manifest import Manifest
from longshift.data.parallel import ordered_map
from longshift.data.version import content_hashes
from longshift.progress import Tick, silent

DARK = 65536 // 8  # 12-bit pictures of scanners end at 4095


@dataclass(frozen=True)
class DataProblem:
    """One problem of a dataset.

    Attributes:
        kind: unreadable, truncated, zero-byte, not an image, decompression bomb, duplicate, empty class,
            copy, two labels, similar labels, similar domains, misplaced, other format or dark.
        path: The file or folder.
        detail: One phrase.

    Example:
        >>> from longshift.data import load_dataset, verify
        >>> for problem in verify(load_dataset("hospitals/")):  # doctest: +SKIP
        ...     print(problem.kind, problem.path, problem.detail)
    """

    kind: str
    path: str
    detail: str


def verify(manifest: Manifest, tick: Tick = silent) -> list[DataProblem]:
    """Find all problems of a dataset. Every image is decoded.

    Args:
        manifest: The dataset.
        tick: Function that is called once per image, for a progress bar.

    Returns:
        The problems: first those of the layout, then those of the images in the order of the manifest.

    Example:
        >>> from longshift.data import load_dataset
        >>> verify(load_dataset("digits"))
        []
    """
    found = list(layout_problems(manifest))
    if manifest.root is None:
        return found
    hashes: list[str] = []  # "" for a broken image, which is not a duplicate of another broken one
    if manifest.vectors:
        hashes = content_hashes(manifest)
        tick(len(hashes))
    else:
        for content, problem in _looked_at(manifest):
            hashes.append(content)
            if problem:
                found.append(problem)
            tick(1)
    return found + list(duplicates(manifest, hashes))


def _looked_at(manifest: Manifest) -> Iterator[tuple[str, DataProblem | None]]:
    """A hash of each image file, and what is wrong with the image."""
    with open_source(manifest) as source:

        def look(path: str) -> tuple[str, DataProblem | None]:
            try:
                data = source.read(path)
                brightest = decode(data).info.get(BRIGHTEST)
            except BadImage as bad:
                return "", DataProblem(bad.kind, path, bad.detail)
            content = hashlib.sha256(data).hexdigest()
            if brightest is None or brightest >= DARK:
                return content, None
            shades = (brightest >> 8) + 1
            detail = (
                f"16-bit values up to {brightest} of 65535, read as {shades} shades of gray; stretch them over all 16 "
                "bits, or save 8-bit images"
            )
            return content, DataProblem("dark", path, detail)

        yield from ordered_map(look, manifest.paths)


def layout_problems(manifest: Manifest) -> Iterator[DataProblem]:
    """What can be told without opening an image."""
    table, noun = manifest.count_table(), manifest.noun
    for domain, row in zip(manifest.domain_names, table.tolist(), strict=True):
        for label, count in zip(manifest.classes, row, strict=True):
            if count == 0:
                yield DataProblem(
                    "empty class", f"{domain}/{label}", f"the domain {domain!r} has no {noun} of {label!r}"
                )
    known = {f"{domain}/{label}" for domain in manifest.domain_names for label in manifest.classes}
    for folder in manifest.empty_folders:
        if folder not in known:
            yield DataProblem("empty class", folder, "the folder holds no image")
    for kind, names in (("similar labels", manifest.classes), ("similar domains", manifest.domain_names)):
        for group in similar(names):
            yield DataProblem(kind, group[0], differing(group))
    for path in manifest.misplaced:
        yield DataProblem("misplaced", path, "not at domain/class/image, so it is left out")
    for path in manifest.others:
        yield DataProblem("other format", path, "a picture of a format that is not read, so it is left out; convert it")


def duplicates(manifest: Manifest, checksums: Sequence[str]) -> Iterator[DataProblem]:
    """Samples with the bytes of an earlier one.

    In another domain ("duplicate"), what is learned there leaks into the test; inside a domain ("copy"), a copy may be
    trained on while the other is measured; under two labels ("two labels"), one of them is wrong.
    """
    first: dict[str, int] = {}
    what = "numbers" if manifest.vectors else "bytes"
    for index, checksum in enumerate(checksums):
        if not checksum:
            continue
        earlier = first.setdefault(checksum, index)
        if earlier == index:
            continue
        detail = f"the same {what} as {manifest.paths[earlier]}"
        apart = manifest.domains[earlier] != manifest.domains[index]
        if manifest.labels[earlier] != manifest.labels[index]:
            labels = [manifest.classes[int(manifest.labels[i])] for i in (earlier, index)]
            yield DataProblem("two labels", manifest.paths[index], f"{detail}, but {labels[1]} and not {labels[0]}")
        elif not apart:
            yield DataProblem("copy", manifest.paths[index], detail)
        if apart:
            yield DataProblem("duplicate", manifest.paths[index], detail)

"""Looks at every image of a dataset and lists all that is wrong with it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from longshift.data.content_version import changed_silently, content_of
from longshift.data.image_bytes import open_source
from longshift.data.image_cache import damaged_stores
from longshift.data.image_decoding import BRIGHTEST, BadImage, decode
from longshift.data.manifest import Manifest
from longshift.data.parallel import ordered_map
from longshift.data.similar_names import differing, similar
from longshift.data.vectors import ordered_vectors
from longshift.progress import Tick, silent

DARK = 65536 // 8  # 12-bit pictures of scanners end at 4095


@dataclass(frozen=True)
class Problem:
    """One problem of a dataset.

    Attributes:
        kind: unreadable, truncated, zero-byte, not an image, decompression bomb, duplicate, empty class,
            similar labels, similar domains, misplaced, other format, dark, changed or damaged store.
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

    def to_json(self) -> dict[str, str]:
        """As a mapping of texts."""
        return asdict(self)


def verify(manifest: Manifest, tick: Tick = silent, cache: Path | None = None) -> list[Problem]:
    """Find all problems of a dataset and of its decoded images in the cache. Every image is decoded.

    Args:
        manifest: The dataset.
        tick: Function that is called once per image, for a progress bar.
        cache: Folder of the cache; by default $LONGSHIFT_CACHE or ~/.cache/longshift.

    Returns:
        The problems: first those of the layout and of the cache, then those of the images in the order of the manifest.

    Example:
        >>> from longshift.data import load_dataset
        >>> verify(load_dataset("digits"))
        []
    """
    if manifest.root is None:
        return list(layout_problems(manifest))
    found: list[Problem] = []
    hashes: list[str] = []  # of the files
    checksums: list[str] = []  # of the samples; "" for a broken one, which is not a duplicate of another broken one
    if manifest.vectors:
        x, _ = ordered_vectors(manifest)
        tick(len(x))
        checksums = [hashlib.sha256(row.tobytes()).hexdigest() for row in x]
    else:
        for content, problem in _looked_at(manifest):
            hashes.append(content)
            checksums.append("" if problem and problem.kind != "dark" else content)
            if problem:
                found.append(problem)
            tick(1)
    before = [*layout_problems(manifest), *_cache_problems(manifest, hashes, cache)]
    return before + found + list(duplicates(manifest, checksums))


def _looked_at(manifest: Manifest) -> Iterator[tuple[str, Problem | None]]:
    """The content of each image file as a hash, and what is wrong with it."""
    with open_source(manifest) as source:

        def look(path: str) -> tuple[str, Problem | None]:
            try:
                data = source.read(path)
            except BadImage as bad:
                return content_of(bad), Problem(bad.kind, path, bad.detail)
            content = content_of(data)
            try:
                brightest = decode(data).info.get(BRIGHTEST)
            except BadImage as bad:
                return content, Problem(bad.kind, path, bad.detail)
            if brightest is not None and brightest < DARK:
                return content, Problem("dark", path, _dark(brightest))
            return content, None

        yield from ordered_map(look, manifest.paths)


def _dark(brightest: int) -> str:
    return (
        f"16-bit values up to {brightest} of 65535, read as {(brightest >> 8) + 1} shades of gray; "
        "stretch them over all 16 bits, or save 8-bit images"
    )


def _cache_problems(manifest: Manifest, hashes: Sequence[str], cache: Path | None) -> Iterator[Problem]:
    """Files whose content changed while their time stamps did not, and stores whose pixels are not those written."""
    if changed := changed_silently(manifest, hashes, cache):
        yield Problem("changed", manifest.argument, f"{changed}, with the sizes and times of before: a damaged disk?")
    for folder in damaged_stores(manifest, cache):
        yield Problem("damaged store", str(folder), "not the pixels that were written; remove the folder")


def layout_problems(manifest: Manifest) -> Iterator[Problem]:
    """What can be told without opening an image."""
    table, noun = manifest.count_table(), manifest.noun
    for domain, row in zip(manifest.domain_names, table.tolist(), strict=True):
        for label, count in zip(manifest.classes, row, strict=True):
            if count == 0:
                yield Problem("empty class", f"{domain}/{label}", f"the domain {domain!r} has no {noun} of {label!r}")
    known = {f"{domain}/{label}" for domain in manifest.domain_names for label in manifest.classes}
    for folder in manifest.empty_folders:
        if folder not in known:
            yield Problem("empty class", folder, "the folder holds no image")
    for kind, names in (("similar labels", manifest.classes), ("similar domains", manifest.domain_names)):
        for group in similar(names):
            yield Problem(kind, group[0], differing(group))
    for path in manifest.misplaced:
        yield Problem("misplaced", path, "not at domain/class/image, so it is left out")
    for path in manifest.others:
        yield Problem("other format", path, "a picture of a format that is not read, so it is left out; convert it")


def duplicates(manifest: Manifest, checksums: Sequence[str]) -> Iterator[Problem]:
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
            yield Problem("two labels", manifest.paths[index], f"{detail}, but {labels[1]} and not {labels[0]}")
        elif not apart:
            yield Problem("copy", manifest.paths[index], detail)
        if apart:
            yield Problem("duplicate", manifest.paths[index], detail)

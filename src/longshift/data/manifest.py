"""The manifest of a dataset: one row per sample (path, label, domain, split, group), and where the files are."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from longshift.array_types import IntArray


class Row(NamedTuple):
    """One sample; rows sort in the order of a manifest.

    Attributes:
        domain: Name of the domain.
        label: Name of the class.
        path: Path from the root of the dataset.
        split: "test" for a sample that is never trained on; else "".
        group: What samples have in common that must not be split (a patient, a lesion); "" for a sample on its own.

    Example:
        >>> Row("north", "cat", "north/cat/1.png").label
        'cat'
    """

    domain: str
    label: str
    path: str
    split: str = ""
    group: str = ""


@dataclass(frozen=True, eq=False)
class Manifest:
    """Samples in a fixed order (by domain, class, path), so that an index means the same file everywhere.

    Attributes:
        name: Name of the dataset.
        root: Folder, .zip or file of images or vectors that holds the samples; None for the embedded digits.
        paths: Paths from the root, with "/" on every system.
        labels: Classes (N,) as indices into `classes`.
        domains: Domains (N,) as indices into `domain_names`.
        classes: Names of the classes.
        domain_names: Names of the domains.
        splits: The optional split column, "" where it is not given.
        groups: The optional group column, "" for a sample on its own.
        prefix: Folder inside a .zip that `paths` are relative to.
        empty_folders: Folders domain/class without an image.
        misplaced: Images that are not at domain/class/image and are left out.
        others: Images in formats that are not read, left out.
        vectors: Whether samples are vectors, and `paths` their ids.
        skipped_levels: Folders between domain and class that are the same everywhere, such as "images".
        image_column: Column of the files of a table that holds the images, whose `paths` are file/row.
        given: What was given to `load_dataset`, for commands in messages.

    Example:
        >>> rows = [Row("north", "cat", "north/cat/1.png"), Row("south", "dog", "south/dog/1.png")]
        >>> found = Manifest.from_rows("pets", Path("pets"), rows)
        >>> found.classes, found.domain_names, found.labels.tolist()
        (('cat', 'dog'), ('north', 'south'), [0, 1])
    """

    name: str
    root: Path | None
    paths: tuple[str, ...]
    labels: IntArray
    domains: IntArray
    classes: tuple[str, ...]
    domain_names: tuple[str, ...]
    splits: tuple[str, ...] | None = None
    groups: tuple[str, ...] | None = None
    prefix: str = ""
    empty_folders: tuple[str, ...] = ()
    misplaced: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    vectors: bool = False
    skipped_levels: tuple[str, ...] = ()
    image_column: str = ""
    given: str = ""

    def __repr__(self) -> str:
        """One line: thousands of paths would fill a notebook."""
        return (
            f"Manifest({self.name!r}: {len(self.paths):,} {'vectors' if self.vectors else 'images'}, "
            f"classes {', '.join(self.classes[:8])}{', ...' * (len(self.classes) > 8)}; "
            f"domains {', '.join(self.domain_names)})"
        )

    @classmethod
    def from_rows(
        cls,
        name: str,
        root: Path | None,
        rows: Iterable[Row],
        prefix: str = "",
        empty_folders: Iterable[str] = (),
        misplaced: Iterable[str] = (),
        others: Iterable[str] = (),
        vectors: bool = False,
        image_column: str = "",
    ) -> Manifest:
        """Sort the rows and number their classes and domains (in order of their names)."""
        ordered = sorted(rows)
        classes = tuple(sorted({row.label for row in ordered}))
        domain_names = tuple(sorted({row.domain for row in ordered}))
        label_index = {label: i for i, label in enumerate(classes)}
        domain_index = {domain: i for i, domain in enumerate(domain_names)}
        return cls(
            name=name,
            root=root,
            paths=tuple(row.path for row in ordered),
            labels=np.array([label_index[row.label] for row in ordered], dtype=np.int64),
            domains=np.array([domain_index[row.domain] for row in ordered], dtype=np.int64),
            classes=classes,
            domain_names=domain_names,
            splits=tuple(row.split for row in ordered) if any(row.split for row in ordered) else None,
            groups=tuple(row.group for row in ordered) if any(row.group for row in ordered) else None,
            prefix=prefix,
            empty_folders=tuple(empty_folders),
            misplaced=tuple(misplaced),
            others=tuple(others),
            vectors=vectors,
            image_column=image_column,
        )

    @property
    def noun(self) -> str:
        """What a sample is, in messages."""
        return "vector" if self.vectors else "image"

    @property
    def argument(self) -> str:
        """How to name the dataset on a command line."""
        return shlex.quote(self.given or str(self.root or self.name))

    def __len__(self) -> int:
        return len(self.paths)

    def count_table(self) -> IntArray:
        """Samples per (domain, class)."""
        table = np.zeros((len(self.domain_names), len(self.classes)), dtype=np.int64)
        np.add.at(table, (self.domains, self.labels), 1)
        return table

    def counts(self) -> dict[str, dict[str, int]]:
        """The same as names: {domain: {class: n}}."""
        table = self.count_table()
        return {
            domain: {name: int(table[i, j]) for j, name in enumerate(self.classes)}
            for i, domain in enumerate(self.domain_names)
        }

    def indices(self, domain: str, label: str | None = None) -> IntArray:
        """Indices of a domain's samples, optionally of one class only."""
        mask = self.domains == self.domain_names.index(domain)
        if label is not None:
            mask &= self.labels == self.classes.index(label)
        return np.flatnonzero(mask)

    def fingerprint(self) -> str:
        """SHA-256 over names, paths, labels, domains, splits and groups if there are some (not over the pixels)."""
        digest = hashlib.sha256()
        for text in (*self.classes, "", *self.domain_names, "", *self.paths):
            digest.update(text.encode("utf-8", "surrogateescape") + b"\0")
        digest.update(self.labels.astype("<i8").tobytes() + self.domains.astype("<i8").tobytes())
        for split in self.splits or ():
            digest.update(split.encode("utf-8", "surrogateescape") + b"\0")
        for group in self.groups or ():
            digest.update(b"group\0" + group.encode("utf-8", "surrogateescape") + b"\0")
        return digest.hexdigest()

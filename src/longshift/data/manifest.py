"""What a dataset is: one row a sample (path, label, domain, optional split), and where the files lie."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Manifest:
    """Samples in a fixed order (by domain, class, path), so that an index means the same file everywhere."""

    name: str
    root: Path | None  # folder or .zip that `paths` are relative to; None when the data has no files (digits)
    paths: tuple[str, ...]  # relative, with "/" on every system
    labels: IntArray  # (N,) index into `classes`
    domains: IntArray  # (N,) index into `domain_names`
    classes: tuple[str, ...]
    domain_names: tuple[str, ...]
    splits: tuple[str, ...] | None = None  # (N,) the optional split column, "" where not given

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
        """SHA-256 over names, paths, labels and domains (not over the pixels)."""
        digest = hashlib.sha256()
        for text in (*self.classes, "", *self.domain_names, "", *self.paths):
            digest.update(text.encode("utf-8", "surrogateescape") + b"\0")
        digest.update(self.labels.astype("<i8").tobytes() + self.domains.astype("<i8").tobytes())
        return digest.hexdigest()

"""Samples of a domain and class with the same content, which a split keeps together."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np

from longshift.array_types import IntArray
from longshift.data.content_version import content_hashes
from longshift.data.manifest import Manifest

HASH = 64  # characters of a SHA-256: files that cannot be read have none


@functools.lru_cache(maxsize=4)  # a manifest does not change, and the splits of many runs ask for its copies
def find_copies(manifest: Manifest, cache: Path | None = None) -> IntArray | None:
    """The first sample with the same content, domain and class as each sample (N,); None if there are no copies."""
    if manifest.root is None:
        return None
    first: dict[tuple[str, int, int], int] = {}
    groups = np.arange(len(manifest), dtype=np.int64)
    cells = zip(content_hashes(manifest, cache), manifest.domains.tolist(), manifest.labels.tolist(), strict=True)
    for index, (found, domain, label) in enumerate(cells):
        if len(found) == HASH:
            groups[index] = first.setdefault((found, domain, label), index)
    return groups if (groups != np.arange(len(groups))).any() else None

"""The embedded images: scikit-learn's 1,797 handwritten digits in four visual styles, one style per domain.

Each handwritten digit appears in one domain only, so nothing leaks from one domain to another. Everything is
a fixed function of the digits: no file is read, no state of the environment matters.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from longshift.array_types import FloatArray, IntArray
from longshift.data.digit_styles import SIZE, STYLES, Pixels
from longshift.data.embedded import DIGITS
from longshift.data.manifest import Manifest, Row


def partition(labels: IntArray, parts: int) -> IntArray:
    """The part of each sample: the k-th sample of its class goes to part k mod `parts`."""
    result = np.empty(len(labels), dtype=np.int64)
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        result[members] = np.arange(len(members)) % parts
    return result


def manifest(name: str = DIGITS) -> Manifest:
    """Four domains, ten classes, about 45 samples for each pair; paths name the number of the digit."""
    _, labels = _originals()
    domains = partition(labels, len(STYLES))
    styles = tuple(STYLES)
    rows = (
        Row(styles[domain], str(label), f"{styles[domain]}/{label}/{number:04d}")
        for number, (domain, label) in enumerate(zip(domains.tolist(), labels.tolist(), strict=True))
    )
    return Manifest.from_rows(name, None, rows)


@lru_cache(maxsize=1)
def digit_images() -> Pixels:
    """(1797, 32, 32, 3) uint8, read-only, in the order of `manifest()`."""
    originals, labels = _originals()
    numbers = np.array([int(path.rsplit("/", 1)[1]) for path in manifest().paths])
    domains = partition(labels, len(STYLES))
    rendered = np.empty((len(labels), SIZE, SIZE, 3), dtype=np.uint8)
    for index, draw in enumerate(STYLES.values()):
        mine = np.flatnonzero(domains == index)
        rendered[mine] = draw(originals[mine], mine)
    result: Pixels = rendered[numbers]
    result.flags.writeable = False
    return result


@lru_cache(maxsize=1)
def _originals() -> tuple[FloatArray, IntArray]:
    """The 8x8 images on [0, 1] and their labels."""
    from sklearn.datasets import load_digits  # takes a second to import; most commands never need it

    data = load_digits()
    return np.asarray(data.images, dtype=np.float64) / 16, np.asarray(data.target, dtype=np.int64)

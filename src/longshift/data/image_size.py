"""How large the images of a dataset are, found by looking at some of them."""

from __future__ import annotations

import contextlib

import numpy as np

from longshift.data.image_bytes import open_source
from longshift.data.image_decoding import BadImage, decode
from longshift.data.manifest import Manifest

SMALLEST = 16  # pixels that a network is given at least
DIGIT_SIDE = 32
LOOKED_AT = 32  # images of a dataset


def typical_side(manifest: Manifest) -> int:
    """Median of the shorter sides of some images; 0 if none can be read, which other checks report."""
    if manifest.root is None:
        return DIGIT_SIDE
    chosen = np.unique(np.linspace(0, len(manifest) - 1, min(LOOKED_AT, len(manifest))).astype(int))
    sides = []
    with open_source(manifest) as source:
        for i in chosen:
            with contextlib.suppress(BadImage):
                sides.append(min(decode(source.read(manifest.paths[i])).size))
    return int(np.median(sides)) if sides else 0


def fitting_size(manifest: Manifest, most: int) -> int:
    """The image size that loses nothing and makes nothing up: the typical side, up to `most` pixels."""
    return min(max(typical_side(manifest) or most, SMALLEST), most)

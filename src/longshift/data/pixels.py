"""Single images of a dataset as pixels, without the cache of decoded images."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

from longshift.data.image_bytes import open_source
from longshift.data.image_cache import open_store
from longshift.data.image_decoding import decode, resize
from longshift.data.manifest import Manifest

Pixels = npt.NDArray[np.uint8]


@contextmanager
def open_pixels(manifest: Manifest, size: int) -> Iterator[Callable[[int], Pixels]]:
    """A function that reads the image of an index as (size, size, 3); it raises `BadImage` and works in threads."""
    if manifest.root is None:
        stored = open_store(manifest, size).inputs
        yield lambda index: np.asarray(stored[index], dtype=np.uint8)
    else:
        with open_source(manifest) as source:
            yield lambda index: resize(decode(source.read(manifest.paths[index])), size)

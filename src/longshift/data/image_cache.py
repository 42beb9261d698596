"""The store: every image of a dataset, decoded and resized once, in one memory-mapped array.

    $LONGSHIFT_CACHE/KEY/pixels.npy     (N, size, size, 3) uint8, C order
    $LONGSHIFT_CACHE/KEY/manifest.csv   path, label, domain, split of each row of the array
    $LONGSHIFT_CACHE/KEY/index.json     what it is made from, and a hash of its content

KEY names the format, the manifest, the size and the version of the source images. A store is built in a hidden
folder next to it and renamed when complete, so a folder KEY is always whole.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import PIL
from PIL import Image

from longshift.array_types import IntArray
from longshift.data import digits
from longshift.data.digits import DIGITS
from longshift.data.images import BadImage, ImageSource, open_source, read_pixels, resize
from longshift.data.manifest import Manifest
from longshift.data.parallel import ordered_map
from longshift.data.vectors import ordered_vectors
from longshift.data.version import cache_folder, data_version
from longshift.errors import LongshiftError, UsageError
from longshift.io import cannot_write, locked, read_json, replacing_folder, write_json
from longshift.progress import Tick, silent
from longshift.text import counted, some

FORMAT = 3
log = logging.getLogger("longshift")


@dataclass(frozen=True, eq=False)
class Store:
    """The pixels, vectors or features of a dataset: rows 0 ... N - 1 are the samples of its manifest.

    Features may have several views of each image: then row v * N + i is view v of image i, and view 0 is the image.

    Attributes:
        manifest: The dataset.
        inputs: Pixels (N, size, size, 3) or vectors (views * N, length), read-only.
        size: Pixels per side; 0 for vectors.
        fingerprint: SHA-256 over manifest, size and pixels: the same on every machine.
        views: Number of views.
        style_samples: The sample (views * N,) whose style a row has; None if each has its own.
        version: Version of the data by the content of its files; "" for the embedded digits.

    Example:
        >>> from longshift.data import load_dataset
        >>> store = open_store(load_dataset("digits"), size=32)
        >>> store.inputs.shape[1:], store.size
        ((32, 32, 3), 32)
    """

    manifest: Manifest
    inputs: npt.NDArray[np.uint8] | npt.NDArray[np.float32]
    size: int
    fingerprint: str
    views: int = 1
    style_samples: IntArray | None = None
    version: str = ""

    def __len__(self) -> int:
        return len(self.manifest)


def open_store(manifest: Manifest, size: int, cache: Path | None = None, tick: Tick = silent) -> Store:
    """Open the decoded images of a dataset; decode them first if that has not been done.

    Vectors are read as they are: they have no size and need no cache. A second process that asks for the same store
    waits for the first.

    Args:
        manifest: The dataset.
        size: Pixels per side.
        cache: Folder of the cache; by default $LONGSHIFT_CACHE or ~/.cache/longshift.
        tick: Function that is called once per image while the store is built.

    Returns:
        The store, memory-mapped.

    Raises:
        LongshiftError: If images cannot be read; the message names them.

    Example:
        >>> from longshift.data import load_dataset
        >>> open_store(load_dataset("digits"), size=32).inputs.shape
        (1797, 32, 32, 3)
    """
    if manifest.vectors:
        vectors, digest = ordered_vectors(manifest)
        return Store(manifest, vectors, 0, digest, version=digest)
    if not 1 <= size <= 4096:
        raise UsageError(f"expected an image size from 1 to 4096, got {size}")
    if manifest.root is None:
        return _in_memory(manifest, size)
    cache = cache_folder(cache)
    version = data_version(manifest, cache)
    stem = f"v{FORMAT}-{manifest.fingerprint()[:16]}-{size}-"
    folder = cache / (stem + version[:16])
    try:
        if found := _opened(manifest, size, folder, version):
            return found
        cache.mkdir(parents=True, exist_ok=True)
        with (
            locked(folder.with_name(f".{folder.name}.lock"), lambda: tick(0, "waiting for another process")),
            open_source(manifest) as source,
        ):
            if found := _opened(manifest, size, folder, version):
                return found
            for left in (folder, *cache.glob(f".{folder.name}.*.part")):  # by a builder that was killed
                shutil.rmtree(left, ignore_errors=True)
            stale = _stale(cache, stem, manifest)
            if stale:
                log.warning("the images of %s changed since their store was made; making it again", manifest.name)
            _build(manifest, size, source, version, folder, tick)
            for old in stale:
                shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        raise cannot_write(folder, error) from error
    if found := _opened(manifest, size, folder, version):
        return found
    raise LongshiftError(f"the store {folder} cannot be read. Delete that folder and run again.")


def _opened(manifest: Manifest, size: int, folder: Path, version: str) -> Store | None:
    """The store in a folder; None if there is none or it is not the one that is asked for."""
    try:
        index = read_json(folder / "index.json")
        pixels = np.load(folder / "pixels.npy", mmap_mode="r", allow_pickle=False)
        if index["version"] != version or pixels.shape != (len(manifest), size, size, 3):
            return None
        return Store(manifest, pixels, size, index["fingerprint"], version=version)
    except (LongshiftError, OSError, ValueError, EOFError, KeyError, TypeError):
        return None


def _build(manifest: Manifest, size: int, source: ImageSource, version: str, folder: Path, tick: Tick) -> None:
    """Write everything into a hidden folder, which is then renamed."""
    import pandas as pd  # takes a second to import

    shape = (len(manifest), size, size, 3)
    needed, free = int(np.prod(shape)), shutil.disk_usage(folder.parent).free
    if needed > free:
        raise LongshiftError(
            f"the store of {manifest.name} at {size}x{size} needs {needed / 1e9:.1f} GB, but only {free / 1e9:.1f} GB "
            f"are free in {folder.parent}. Set LONGSHIFT_CACHE to a folder on a larger disk or take a smaller size."
        )
    with replacing_folder(folder) as temporary:
        digest = _digest(manifest, size)
        with (temporary / "pixels.npy").open("wb") as file:
            header: dict[str, Any] = {"descr": "|u1", "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, header)
            # Plain writes, not a map: on a full disk a write fails with an error, a map with a signal.
            for pixels in _decoded(manifest, size, source, tick):
                file.write(pixels)
                digest.update(pixels)
        if data_version(manifest, folder.parent) != version:
            raise LongshiftError(f"images of {manifest.name} changed while its store was being built. Run again.")
        rows = {
            "path": manifest.paths, "label": np.array(manifest.classes)[manifest.labels],
            "domain": np.array(manifest.domain_names)[manifest.domains], "split": manifest.splits or "",
        }  # fmt: skip
        pd.DataFrame(rows).to_csv(temporary / "manifest.csv", index=False)
        index = {
            "format": FORMAT, "dataset": manifest.name, "root": _place(manifest), "size": size, "images": len(manifest),
            "manifest": manifest.fingerprint(), "version": version, "fingerprint": digest.hexdigest(),
            "pillow": PIL.__version__,
        }  # fmt: skip
        write_json(temporary / "index.json", index)


def _decoded(manifest: Manifest, size: int, source: ImageSource, tick: Tick) -> Iterator[bytes]:
    """The pixels of each image in order; all images that can't be read are named in one error at the end."""
    bad: list[str] = []

    def work(path: str) -> bytes | BadImage:
        try:
            return read_pixels(source.read(path), size).tobytes()
        except BadImage as problem:
            return problem

    for path, result in zip(manifest.paths, ordered_map(work, manifest.paths), strict=True):
        if isinstance(result, BadImage):
            bad.append(f"{path} ({result.kind})" if bad else f"{path} ({result.kind}: {result.detail})")
        else:
            yield result
        tick(1)
    if bad:
        raise LongshiftError(
            f"{len(bad)} of the {counted(len(manifest), 'image')} of {manifest.name} cannot be read: {some(bad)}. "
            f"`longshift data verify {manifest.argument}` lists all problems."
        )


def _digest(manifest: Manifest, size: int) -> Any:
    return hashlib.sha256(f"{manifest.fingerprint()} {size}\n".encode())


def _in_memory(manifest: Manifest, size: int) -> Store:
    """The store of the embedded digits, which need no files."""
    if manifest.paths != digits.manifest().paths:
        raise LongshiftError(f"the dataset {manifest.name} has no files, and it is not the embedded {DIGITS}")
    pixels = digits.digit_images()
    if size != digits.SIZE:
        pixels = np.stack([resize(Image.fromarray(image), size) for image in pixels])
        pixels.flags.writeable = False
    digest = _digest(manifest, size)
    digest.update(pixels.tobytes())
    return Store(manifest, pixels, size, digest.hexdigest())


def _place(manifest: Manifest) -> str:
    return os.path.abspath(os.fspath(manifest.root or "")) + "!" + manifest.prefix


def _stale(cache: Path, stem: str, manifest: Manifest) -> list[Path]:
    """Stores of the same manifest and size made from an earlier state of the same folder or archive."""
    place, found = _place(manifest), []
    for folder in cache.glob(stem + "*"):
        with contextlib.suppress(LongshiftError, AttributeError):  # not ours to judge: it may be another dataset's
            if read_json(folder / "index.json").get("root") == place:
                found.append(folder)
    return found

"""Images as vectors: the features of a frozen network for each image of a dataset, as a table to train on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import longshift
from longshift.data import PLAIN, SOURCE_ARRAY, SOURCE_METADATA, Manifest, VectorSource
from longshift.errors import LongshiftError, UsageError
from longshift.io import replacing
from longshift.progress import Tick, silent
from longshift.training import (
    FeatureRequest,
    FrozenNetwork,
    Runtime,
    open_features,
    require_readable,
    unreadable,
    usable_rows,
)

TABLES = (".npz", ".parquet")


@dataclass(frozen=True, eq=False)
class Embedded:
    """Vectors with the samples that they belong to.

    Attributes:
        manifest: All images, also those without a vector.
        rows: Indices of the images with a vector.
        vectors: (len(rows), length) float32.
        source: The network, its weights and the image size.
        skipped: Images that cannot be read, with the reason.
    """

    manifest: Manifest
    rows: npt.NDArray[np.int64]
    vectors: npt.NDArray[np.float32]
    source: VectorSource
    skipped: dict[str, str]


def embed(
    manifest: Manifest,
    network: FrozenNetwork,
    size: int,
    *,
    skip_unreadable: bool = False,
    runtime: Runtime | None = None,
    tick: Tick = silent,
) -> Embedded:
    """Compute feature vectors of all images, in float32 and without augmentation, or read them from the cache.

    Args:
        manifest: The images.
        network: The network and its weights.
        size: Pixels that images are resized to.
        skip_unreadable: Leave out images that cannot be read; otherwise they are an error.
        runtime: Device, threads and cache.
        tick: Called with the number of finished images.

    Returns:
        The vectors, the images they belong to, and where they come from.

    Raises:
        LongshiftError: An image cannot be read.
        Interrupted: `tick` raised it; the same call resumes.
    """
    runtime = runtime or Runtime()
    store = open_features(manifest, network, FeatureRequest(size), runtime=runtime, tick=tick)
    if not skip_unreadable:
        require_readable(store)
    vectors = np.asarray(store.inputs, dtype=np.float32)
    rows = np.flatnonzero(usable_rows(store))
    if not len(rows):
        raise LongshiftError(f"None of the {len(manifest)} images of {manifest.name} can be read")
    how = "resize" if network.backbone.preprocessing == PLAIN else "network"
    source = VectorSource(network.name, network.weights_hash, size, longshift.__version__, how)
    return Embedded(manifest, rows, vectors[rows], source, unreadable(store) if len(rows) < len(manifest) else {})


def require_table(path: Path) -> None:
    """Raise unless vectors can be written in the format of this file."""
    if path.suffix.lower() not in TABLES:
        raise UsageError(f"--out: expected a file that ends in {' or '.join(TABLES)}, got {path}")


def write_table(path: Path, found: Embedded, labeled: bool = True) -> None:
    """Write vectors with ids, where they come from and, if `labeled`, classes and domains; `load_dataset` reads it."""
    require_table(path)
    manifest, rows = found.manifest, found.rows
    columns = {"id": np.array(manifest.paths)[rows]}
    if labeled:
        columns |= {
            "label": np.array(manifest.classes)[manifest.labels[rows]],
            "domain": np.array(manifest.domain_names)[manifest.domains[rows]],
        }
    if labeled and manifest.groups:
        columns["group"] = np.array(manifest.groups)[rows]
    with replacing(path) as temporary:
        if path.suffix.lower() == ".npz":
            with temporary.open("wb") as file:
                arrays: dict[str, Any] = {"x": found.vectors, **columns, SOURCE_ARRAY: np.array(found.source.to_text())}
                np.savez(file, **arrays)
        else:
            _write_parquet(temporary, found, columns)


def _write_parquet(path: Path, found: Embedded, columns: dict[str, npt.NDArray[np.str_]]) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    lists = pa.FixedSizeListArray.from_arrays(pa.array(found.vectors.reshape(-1)), found.vectors.shape[1])
    arrays = {"embedding": lists.cast(pa.list_(pa.float32())), **{name: pa.array(v) for name, v in columns.items()}}
    table = pa.table(arrays).replace_schema_metadata({SOURCE_METADATA: found.source.to_text()})
    parquet.write_table(table, path)

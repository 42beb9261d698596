"""Make the embedded dataset `pacs-features` from features of all images of PACS.

    longshift embed PACS.zip --backbone mobilenetv2_100 --weights FILE --preprocessing resize --out pacs.npz
    python -m results.pacs_features pacs.npz

The features are centered, projected on their first principal components, which are found without labels, and rotated
at random. Rotation keeps all distances and gives the columns similar spreads: networks for vectors standardize each
column, which would give the last component as much weight as the first (ERM on TotalHeavyTail then falls from 46 to
27%). All columns are rounded to integers with one step. The same input gives the same bytes.
"""

from __future__ import annotations

import io
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from longshift.data import SOURCE_ARRAY, get_benchmark, load_dataset, ordered_vectors, read_vector_source, vector_file

COMPONENTS = 192
RESOLUTION = 10  # steps per standard deviation of the widest column: rounding adds 0.1% to its variance
MOST_BYTES = 1_500_000


def principal_components(x: npt.NDArray[np.float32], count: int) -> npt.NDArray[np.float64]:
    """The centered rows on their first `count` principal axes; the largest entry of each axis is positive."""
    centered = x.astype(np.float64) - x.astype(np.float64).mean(axis=0)
    _, axes = np.linalg.eigh(centered.T @ centered)  # in ascending order
    axes = axes[:, ::-1][:, :count]
    axes *= np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(count)])
    return np.asarray(centered @ axes)


def rotated(x: npt.NDArray[np.float64], seed: int = 0) -> npt.NDArray[np.float64]:
    """The rows times a random orthogonal matrix."""
    columns = x.shape[1]
    q, r = np.linalg.qr(np.random.default_rng(seed).standard_normal((columns, columns)))
    return np.asarray(x @ (q * np.sign(np.diag(r))))


def as_int8(x: npt.NDArray[np.float64]) -> npt.NDArray[np.int8]:
    """All columns in units of one step."""
    step = x.std(axis=0).max() / RESOLUTION
    return np.asarray(np.clip(np.rint(x / step), -127, 127), dtype=np.int8)


def write_npz(path: Path, arrays: dict[str, npt.NDArray[np.generic]]) -> None:
    """As `np.savez_compressed`, without the time of writing."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            file = io.BytesIO()
            np.save(file, array, allow_pickle=False)
            entry = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, file.getvalue(), compresslevel=9)


def main(features: Path, out: Path) -> None:
    """Write the embedded file from a table of features that `longshift embed` made."""
    manifest = load_dataset(features)
    published = get_benchmark("PACS")
    if len(manifest) != sum(sum(row.values()) for row in published.totals.values()):
        raise SystemExit(f"Expected all images of PACS, got {len(manifest)} vectors in {features}.")
    source = read_vector_source(features)
    if source is None:
        raise SystemExit(f"Expected vectors that longshift embed made, got {features}.")
    x = as_int8(rotated(principal_components(ordered_vectors(manifest)[0], COMPONENTS)))
    made = replace(source, network=f"{source.network}, {COMPONENTS} principal components, rotated, int8")
    write_npz(
        out,
        {
            "x": np.asfortranarray(x),  # a column has few distinct values and compresses well
            "label": np.array(manifest.classes)[manifest.labels],
            "domain": np.array(manifest.domain_names)[manifest.domains],
            "id": np.array([path.rsplit(".", 1)[0] for path in manifest.paths]),
            SOURCE_ARRAY: np.array(made.to_text()),
        },
    )
    size = out.stat().st_size
    print(f"{out}: {x.shape[0]:,} vectors of {x.shape[1]} components, {size:,} bytes, from {made.words()}")
    if size > MOST_BYTES:
        raise SystemExit(f"Expected at most {MOST_BYTES:,} bytes, got {size:,}.")


if __name__ == "__main__":
    main(Path(sys.argv[1]), vector_file("pacs-features"))

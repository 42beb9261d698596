"""Vectors as data: a table of embeddings from any model, each with a class and a domain.

.npz      arrays `x` (N, D) of numbers, `label` (N,), `domain` (N,) of texts or whole numbers, optionally `id` (N,)
          and `group` (N,)
.parquet  columns `label`, `domain`, optionally `id` and `group`, and the vectors: one column of lists called
          `embedding`, or one column per number

Columns of other names are chosen behind the path, as for tables of images; `path` is the id.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import zipfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from longshift.data.digits import PACS_FEATURES, PACS_FEATURES_FILE
from longshift.data.manifest import Manifest, Row
from longshift.data.tables import Choices, image_columns, read_parquet, refuse_bomb, split_choices, text_of
from longshift.errors import LongshiftError
from longshift.io import require_regular
from longshift.text import agree, counted, some

FloatArray = npt.NDArray[np.float32]
LISTS = "embedding"
NAMES = ("label", "domain", "id", "group")
LABELED = ("label", "domain")


@dataclass(frozen=True, eq=False)
class Vectors:
    """The content of a file, in its own order."""

    x: FloatArray  # (N, D)
    labels: list[str]
    domains: list[str]
    ids: list[str]
    groups: list[str]


def vector_file(data: str | Path) -> Path:
    """The file of a dataset, without the columns that are chosen behind it; also that of embedded vectors."""
    return PACS_FEATURES_FILE if str(data) == PACS_FEATURES else Path(split_choices(data)[0]).expanduser()


def holds_vectors(data: Path | str) -> bool:
    """Whether a dataset is a table of vectors and not of images; a file that does not exist is not."""
    return is_vectors(vector_file(data), split_choices(data)[1])


def is_vectors(path: Path, choices: Choices, needs: Sequence[str] = LABELED) -> bool:
    """Whether a file holds vectors, with those of the columns label and domain that are needed."""
    suffix = path.suffix.lower()
    if suffix == ".npz":
        return True
    if suffix != ".parquet" or not path.is_file():
        return False
    from pyarrow import parquet

    try:
        schema = parquet.read_schema(path)
    except (OSError, ValueError):  # read_table will say what is wrong with it
        return False
    names = set(schema.names)
    lower = {name.strip().lower() for name in names}
    if image_columns(schema) or "path" in lower - {name.lower() for name in choices.values()}:
        return False
    label = choices.get("label", "label")
    return {choices.get(column, column) for column in needs} <= names and (bool(needs) or bool({LISTS, label} & names))


def read_embeddings(path: Path, name: str, choices: Choices | None = None, needs: Sequence[str] = LABELED) -> Manifest:
    """The manifest of a file of vectors; the `path` of a sample is its id."""
    found = read_vectors(path, choices, needs)
    rows = [
        Row(*values)
        for values in zip(found.domains, found.labels, found.ids, [""] * len(found.ids), found.groups, strict=True)
    ]
    return Manifest.from_rows(name, path, rows, vectors=True)


def ordered_vectors(manifest: Manifest) -> tuple[FloatArray, str]:
    """The vectors in the order of the manifest, and a SHA-256 over manifest and vectors."""
    assert manifest.root is not None
    try:
        status = os.stat(manifest.root)
    except OSError as error:
        raise LongshiftError(f"cannot read {manifest.root}: {error.strerror}") from error
    return _ordered_vectors(manifest, manifest.root, (status.st_size, status.st_mtime_ns, status.st_ctime_ns))


@functools.lru_cache(maxsize=1)  # a command asks for the version, the vectors and their copies
def _ordered_vectors(manifest: Manifest, root: Path, stamps: tuple[int, ...]) -> tuple[FloatArray, str]:
    # The manifest may have been made by hand.
    found = read_vectors(root, split_choices(manifest.given)[1] if manifest.given else None, ())
    place = {name: row for row, name in enumerate(found.ids)}
    absent = [name for name in manifest.paths if name not in place]
    if absent or len(place) != len(manifest):
        raise LongshiftError(
            f"{root} changed since it was opened: expected {len(manifest)} vectors, got {len(place)}, {len(absent)} of "
            "the expected ones missing. Open it again."
        )
    x = found.x[[place[name] for name in manifest.paths]]
    x.flags.writeable = False
    digest = hashlib.sha256(f"{manifest.fingerprint()} vectors {x.shape[1]}\n".encode())
    digest.update(x.data)
    return x, digest.hexdigest()


def read_vectors(path: Path, choices: Choices | None = None, needs: Sequence[str] = LABELED) -> Vectors:
    """Read and check a file of vectors with their labels and domains, "" where those are not needed and not there."""
    columns = _columns(path, needs, choices or {})
    x = _numbers(path, columns["x"])
    labels, domains = (
        _texts(path, name, columns[name], len(x), blank=name not in needs) if name in columns else [""] * len(x)
        for name in LABELED
    )
    groups = _texts(path, "group", columns["group"], len(x), blank=True) if "group" in columns else [""] * len(x)
    return Vectors(x, labels, domains, _ids(path, columns, len(x)), groups)


def read_unlabeled(data: str | Path) -> tuple[FloatArray, list[str], list[str]]:
    """The vectors and ids of a file, which may have no labels and domains, and the ids of unusable vectors."""
    path = vector_file(data)
    columns = _columns(path, (), split_choices(data)[1])
    x, good = _finite(path, columns["x"])
    ids = _ids(path, columns, len(x))
    return x[good], [ids[row] for row in np.flatnonzero(good)], [ids[row] for row in np.flatnonzero(~good)]


def _columns(path: Path, needed: Sequence[str], choices: Choices) -> dict[str, npt.NDArray[Any]]:
    chosen = {"id" if column == "path" else column: name for column, name in choices.items()}
    return (_from_npz if path.suffix.lower() == ".npz" else _from_parquet)(path, (*needed, *chosen), chosen)


def _finite(path: Path, x: npt.NDArray[Any]) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """The vectors, and which of them hold only finite numbers."""
    if x.ndim != 2 or x.shape[0] < 1 or x.shape[1] < 1 or x.dtype.kind not in "fiu":
        raise LongshiftError(
            f"{path}: expected vectors as an array (N, D) of numbers, got shape {x.shape} of {x.dtype}"
        )
    with np.errstate(over="ignore"):
        vectors = np.ascontiguousarray(x, dtype=np.float32)
    return vectors, np.asarray(np.isfinite(vectors).all(axis=1))


def _numbers(path: Path, x: npt.NDArray[Any]) -> FloatArray:
    vectors, good = _finite(path, x)
    bad = np.flatnonzero(~good)
    if len(bad):
        raise LongshiftError(
            f"{path}: {len(bad)} of the {counted(len(x), 'vector')} {agree(len(bad), 'holds', 'hold')} NaN, infinite "
            f"or too large numbers: {agree(len(bad), 'row', 'rows')} {some([str(row) for row in bad])} (from 0). "
            f"Remove {agree(len(bad), 'that row', 'those rows')}."
        )
    return vectors


def _texts(path: Path, name: str, values: npt.NDArray[Any], n: int, blank: bool = False) -> list[str]:
    if values.shape != (n,):
        raise LongshiftError(f"{path}: expected {counted(n, 'value')} in `{name}`, one per vector, got {values.shape}")
    texts = list(map(text_of, values.tolist()))
    empty = [str(row) for row, text in enumerate(texts) if not text]
    if empty and not blank:
        listed = f"{agree(len(empty), 'row', 'rows')} {some(empty)} (from 0)"
        raise LongshiftError(f"{path} has {counted(len(empty), 'row')} with an empty {name}: {listed}")
    return texts


def _ids(path: Path, columns: dict[str, npt.NDArray[Any]], n: int) -> list[str]:
    """The ids, or the numbers of the rows where there are none."""
    if "id" not in columns:
        width = len(str(n - 1))
        return [f"{row:0{width}d}" for row in range(n)]
    ids = _texts(path, "id", columns["id"], n)
    twice = sorted(name for name, times in Counter(ids).items() if times > 1)
    if twice:
        raise LongshiftError(f"{path} has {len(twice)} ids more than once: {some(twice)}")
    return ids


def _from_npz(path: Path, needed: Sequence[str], chosen: Choices) -> dict[str, npt.NDArray[Any]]:
    try:
        require_regular(path)
        if not zipfile.is_zipfile(path):
            raise LongshiftError(f"{path} is not an .npz file. Write one with np.savez or longshift embed.")
        with zipfile.ZipFile(path) as archive:
            unpacked = sum(entry.file_size for entry in archive.infolist())
        refuse_bomb(path, unpacked)
        with np.load(path, allow_pickle=False) as file:
            names = list(file.files)
            _require(path, names, [chosen.get(name, name) for name in ("x", *needed)], "array")
            found = {name: chosen.get(name, name) for name in ("x", *NAMES)}
            return {name: file[called] for name, called in found.items() if called in names}
    except ValueError as error:
        if "allow_pickle" not in str(error):
            raise LongshiftError(f"cannot read {path}: {error}") from error
        raise LongshiftError(
            f"{path} holds Python objects, which are refused because loading them can run code. "
            "Save texts as texts: np.savez(FILE, x=x, label=np.array(labels, dtype=str), ...)"
        ) from error
    except LongshiftError:
        raise
    except Exception as error:  # zipfile, zlib and numpy raise nearly anything on damaged files
        raise LongshiftError(f"cannot read {path} as .npz: {error}") from error


def _from_parquet(path: Path, needed: Sequence[str], chosen: Choices) -> dict[str, npt.NDArray[Any]]:
    from pyarrow import compute

    try:
        called = {name: chosen.get(name, name) for name in NAMES}
        table = read_parquet(path, needed=(LISTS, *called.values()))
        names = list(table.column_names)
        columns = {
            name: np.array(table.column(own).to_pylist(), dtype=object) for name, own in called.items() if own in names
        }
    except LongshiftError:
        raise
    except Exception as error:  # damaged files raise nearly anything
        raise LongshiftError(f"cannot read the table {path}: {error}") from error
    _require(path, names, [chosen.get(name, name) for name in needed], "column")
    if LISTS in names:
        lists = table.column(LISTS).combine_chunks()
        if lists.null_count:
            have = agree(lists.null_count, "has", "have")
            raise LongshiftError(f"{path}: {lists.null_count} of the {counted(len(lists), 'row')} {have} no embedding")
        lengths = np.unique(compute.list_value_length(lists).to_numpy(zero_copy_only=False))
        if len(lengths) != 1:
            found = ", ".join(map(str, lengths[:5])) or "none"
            raise LongshiftError(f"{path}: expected embeddings of one length, got lengths {found}")
        flat = lists.flatten().to_numpy(zero_copy_only=False)
        return {"x": flat.reshape(len(lists), -1), **columns}
    about = {*NAMES, *called.values()}
    numeric = [name for name in names if name not in about and _is_number(table.schema.field(name).type)]
    others = [name for name in names if name not in about and name not in numeric]
    if others or not numeric:
        raise LongshiftError(
            f"{path}: expected a column `{LISTS}` of lists, or only numeric columns next to {', '.join(NAMES)}, got "
            + (f"other columns: {some(others)}" if others else "no numbers")
        )
    if table.num_rows == 0:
        raise LongshiftError(f"{path} has no rows")
    return {"x": np.stack([table.column(name).to_numpy() for name in numeric], axis=1), **columns}


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_floating(kind) or types.is_integer(kind))


def _require(path: Path, found: list[str], needed: Sequence[str], noun: str) -> None:
    missing = [name for name in needed if name not in found]
    if missing:
        raise LongshiftError(
            f"{path} lacks the {noun}{'s' * (len(missing) > 1)} {', '.join(missing)}: expected {', '.join(needed)} "
            f"and optionally id and group, got {', '.join(found) or 'none'}"
        )


SOURCE_ARRAY = "source"  # in an .npz
SOURCE_METADATA = b"longshift_source"  # of a Parquet schema


@dataclass(frozen=True)
class VectorSource:
    """The network that computed vectors.

    Attributes:
        network: Its name.
        weights: SHA-256 of its weights.
        image_size: Pixels that it was given.
        longshift: Version that computed them.
        preprocessing: "network" if images were resized and cropped as the network states; "resize" for whole images.
    """

    network: str
    weights: str
    image_size: int
    longshift: str
    preprocessing: str = "resize"

    def agrees(self, other: VectorSource) -> bool:
        """Whether both compute the same vectors of an image."""
        return replace(self, longshift="") == replace(other, longshift="")

    def words(self) -> str:
        """In a sentence.

        >>> VectorSource("resnet50", "1a2b3c4d5e6f7a8b", 224, "0.1.0").words()
        'resnet50 (weights 1a2b3c4d5e6f) on 224x224 pixels (resize)'
        """
        size = f"{self.image_size}x{self.image_size}"
        return f"{self.network} (weights {self.weights[:12]}) on {size} pixels ({self.preprocessing})"

    def to_text(self) -> str:
        """For a file."""
        return json.dumps(asdict(self))


def read_vector_source(data: str | Path) -> VectorSource | None:
    """Where the vectors of a dataset come from; None if its file does not tell."""
    path = vector_file(data)
    try:
        if path.suffix.lower() == ".npz":
            with np.load(path, allow_pickle=False) as file:
                text = str(file[SOURCE_ARRAY])
        else:
            from pyarrow import parquet

            text = parquet.read_schema(path).metadata[SOURCE_METADATA].decode()
        return VectorSource(**json.loads(text))
    except Exception:  # it does not tell, or other readers report what is wrong with the file
        return None

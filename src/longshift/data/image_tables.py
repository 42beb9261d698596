"""Images inside tables: Parquet and Hugging Face datasets with columns of image bytes, label and domain.

An image is `{bytes, path}`, as Hugging Face writes it, or plain bytes; a path alone is never followed. Class names come
from the features of the file. Nothing here runs code that comes with a dataset.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from PIL import Image

from longshift.data.folder_layout import PARTS
from longshift.data.images import to_rgb
from longshift.data.manifest import Manifest, Row
from longshift.data.tables import (
    CONFIG,
    Choices,
    find_columns,
    image_columns,
    parquet_schema,
    refuse_blank,
    text_of,
)
from longshift.errors import LongshiftError, UsageError
from longshift.io import cannot_write, read_json
from longshift.text import some

if TYPE_CHECKING:  # takes long to import; most datasets are folders
    import pyarrow as pa

HUB = "hf://"
INFO, STATE = "dataset_info.json", "state.json"  # of `save_to_disk`; the second lists the Arrow files
CONVERTED = "refs/convert/parquet"  # where the hub keeps datasets of other formats as Parquet
PARTIAL = "partial-"  # a part that the hub converted only the beginning of
MOST_ROWS = 256  # that are written at a time


def holds_images(path: Path, choices: Choices) -> bool:
    """Whether a Parquet file is a table of images and not of their paths or of vectors."""
    from pyarrow import parquet

    try:
        schema = parquet.read_schema(path)
    except (OSError, ValueError):  # the reader of tables will say what is wrong with it
        return False
    images = image_columns(schema)
    if "path" in choices:
        return choices["path"] in images or (bool(images) and choices["path"] not in schema.names)
    return "image" in images or (bool(images) and "path" not in schema.names)


def table_files(root: Path) -> list[str]:
    """The files of a folder that is a Hugging Face dataset, relative to it; none if it is another folder.

    It was written by `save_to_disk`, or it has Parquet files as a repository on the hub has.
    """
    files: list[Path] = []
    for state in sorted([*root.glob(STATE), *root.glob(f"*/{STATE}")]):  # of a Dataset, of the parts of a DatasetDict
        if state.with_name(INFO).is_file():
            files += [state.with_name(Path(entry["filename"]).name) for entry in read_json(state)["_data_files"]]
    if not files and any(holds_images(file, {}) for file in (*root.glob("*.parquet"), *root.glob("*/*.parquet"))):
        files = sorted(root.rglob("*.parquet"))
    return [file.relative_to(root).as_posix() for file in files]


def read_image_table(
    root: Path, files: Sequence[str], name: str, choices: Choices, needs: Sequence[str] = ("label", "domain")
) -> Manifest:
    """The manifest of a Parquet file (`files` is [""]) or of a folder of files; the path of a sample is file/row."""
    files = _of_config(root, files, choices.get(CONFIG))
    rows: list[Row] = []
    column = ""
    for file in files:
        column, count, found = _columns(root / file, choices, needs)
        part = _part(file)
        by_part = choices.get("domain") == "split" and "domain" not in found
        splits, domains = found.get("split") or [part] * count, found.get("domain") or [part * by_part] * count
        labels, groups = (found.get(name) or [""] * count for name in ("label", "group"))
        refuse_blank(root / file, *({"label": labels, "domain": domains}[column] for column in needs))
        start = f"{file}/" if file else ""
        paths = (f"{start}{row:06d}" for row in range(count))
        rows += map(Row, domains, labels, paths, splits, groups)
    if not rows:
        raise LongshiftError(f"{root} has no rows")
    return Manifest.from_rows(name, root, rows, image_column=column)


def _columns(path: Path, choices: Choices, needs: Sequence[str]) -> tuple[str, int, dict[str, list[str]]]:
    """The name of the column of images, the number of rows, and the texts of the other columns."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        stream = None
        if path.suffix == ".arrow":
            stream = pa.ipc.open_stream(pa.memory_map(os.fspath(path)))
        schema = stream.schema if stream else parquet_schema(path)
    except (OSError, ValueError) as error:
        raise LongshiftError(f"cannot read the table {path}: {error}") from error
    images = image_columns(schema)
    image = choices.get("path") or ("image" if "image" in images else images[0] if len(images) == 1 else "")
    if image not in images:
        raise LongshiftError(
            f"{path}: expected image bytes in {f'the column {image}' if image else 'one column'}, got them in "
            f"{some(images) or 'none'} of {', '.join(schema.names)}. Choose by name: {path.name}#image=COLUMN"
        )
    # A DatasetDict may have one part per site: then the domain is the name of the part.
    by_part = choices.get("domain") == "split" and "split" not in schema.names
    others = {key: value for key, value in choices.items() if not (by_part and key == "domain")}
    needed = [column for column in needs if not (by_part and column == "domain")]
    place = find_columns(path, schema.names, others, needed)
    names = {key: schema.names[index] for key, index in place.items() if key != "path"}
    try:
        chosen = list(names.values())
        table = stream.read_all().select(chosen) if stream else parquet.read_table(path, columns=chosen)
        count = table.num_rows
        values = {key: table.column(column).to_pylist() for key, column in names.items()}
    except (OSError, ValueError) as error:
        raise LongshiftError(f"cannot read the table {path}: {error}") from error
    known = _class_names(schema)
    return image, count, {key: list(_texts(column, known.get(names[key]))) for key, column in values.items()}


def _texts(values: Sequence[Any], names: Sequence[str] | None) -> Iterator[str]:
    for value in values:
        if names is None or value is None:
            yield text_of(value)
        else:  # -1 stands for a missing label
            yield names[value] if 0 <= value < len(names) else ""


def _class_names(schema: pa.Schema) -> dict[str, list[str]]:
    """The names of the classes of each column whose values are numbers of classes."""
    try:
        features = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
        return {column: kind["names"] for column, kind in features.items() if kind.get("_type") == "ClassLabel"}
    except (KeyError, ValueError, TypeError, AttributeError):  # not written by Hugging Face
        return {}


def _part(file: str) -> str:
    """The part (train, test ...) that a file belongs to: data/train-00000-of-00002.parquet, test/0000.parquet."""
    place = PurePosixPath(file)
    stem = re.sub(r"-\d+-of-\d+$", "", place.stem)
    name = place.parent.name if stem in ("data", "dataset") or stem.isdigit() else stem
    return name if file else ""


def _of_config(root: Path, files: Sequence[str], config: str | None) -> Sequence[str]:
    """The files of one configuration: folders at the top that are not the parts of a split."""
    tops = sorted({file.partition("/")[0] for file in files if file.endswith(".parquet") and "/" in file})
    if config is None and (len(tops) < 2 or PARTS.issuperset(tops)):
        return files
    if config not in tops:
        raise LongshiftError(f"{root} has the configurations {', '.join(tops) or 'none'}. Choose one: #config=NAME")
    return [file for file in files if file.startswith(f"{config}/")]


def download(name: str) -> Path:
    """The Parquet files of a dataset on the Hugging Face hub, in the hub's own cache.

    Args:
        name: Such as "hf://owner/name".

    Raises:
        LongshiftError: It cannot be downloaded, or the hub has it not (or not wholly) as Parquet.
    """
    from huggingface_hub import snapshot_download

    repository = name.removeprefix(HUB).strip("/")
    try:
        for revision in (None, CONVERTED):
            folder = Path(
                snapshot_download(repository, repo_type="dataset", revision=revision, allow_patterns="*.parquet")
            )
            files = list(folder.rglob("*.parquet"))
            if files and not any(file.parent.name.startswith(PARTIAL) for file in files):
                return folder
    except Exception as error:  # of the name, the network, the hub or the disk
        raise LongshiftError(f"cannot download {name}: {str(error).splitlines()[0]}") from error
    raise LongshiftError(
        f"the hub does not have all of {name} as Parquet. Load it with the package datasets, write it with "
        "save_to_disk(FOLDER), and give that folder."
    )


class ImageSamples(Protocol):
    """A sequence of (image, label, domain), such as a PyTorch `Dataset`.

    An image is a Pillow image or an array or tensor of pixels: (H, W, 3) or (3, H, W), of type uint8 or from 0 to 1.
    Labels and domains are names, or numbers: then the attributes `classes` and `domains`, if any, have the names.
    """

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Any:
        """The sample (image, label, domain) of an index."""
        ...


def keep_images(samples: ImageSamples, folder: Path) -> Path:
    """Write each sample once to a Parquet file in `folder`, so that a fit can resume and its model be measured again.

    Raises:
        TypeError: A sample is not (image, label, domain).
    """
    import pyarrow as pa
    from pyarrow import parquet

    kind = pa.struct({"bytes": pa.binary(), "path": pa.string()})
    schema = pa.schema({"image": kind, "label": pa.string(), "domain": pa.string()})
    digest = hashlib.sha256()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".images-") as hidden:
            temporary = Path(hidden) / "images.parquet"
            with parquet.ParquetWriter(temporary, schema) as writer:
                for start in range(0, len(samples), MOST_ROWS):
                    rows = [_row(samples, i) for i in range(start, min(start + MOST_ROWS, len(samples)))]
                    for row in rows:
                        digest.update(row["image"]["bytes"] + f"\0{row['label']}\0{row['domain']}\0".encode())
                    writer.write_table(pa.Table.from_pylist(rows, schema))
            file = folder / f"images-{digest.hexdigest()[:12]}.parquet"
            if not file.exists():
                os.replace(temporary, file)
    except OSError as error:
        raise cannot_write(folder, error) from error
    return file


def _row(samples: ImageSamples, index: int) -> dict[str, Any]:
    sample = samples[index]
    if not isinstance(sample, (tuple, list)) or len(sample) != 3:
        raise TypeError(f"Expected samples (image, label, domain), got {type(sample).__name__} at index {index}.")
    image, label, domain = sample
    buffer = io.BytesIO()
    _picture(image, index).save(buffer, "PNG", compress_level=1)
    names = (getattr(samples, "classes", None), getattr(samples, "domains", None))
    texts = (_named(value, known) for value, known in zip((label, domain), names, strict=True))
    return {"image": {"bytes": buffer.getvalue(), "path": None}, **dict(zip(("label", "domain"), texts, strict=True))}


def _named(value: Any, names: Sequence[str] | None) -> str:
    plain = value.item() if hasattr(value, "item") else value
    return str(names[plain]) if names is not None and isinstance(plain, int) else str(plain)


def _picture(image: Any, index: int) -> Image.Image:
    if isinstance(image, Image.Image):
        return to_rgb(image)
    pixels = np.asarray(image)
    if pixels.ndim == 3 and pixels.shape[0] in (1, 3) and pixels.shape[2] not in (1, 3):
        pixels = pixels.transpose(1, 2, 0)
    if pixels.ndim == 3 and pixels.shape[2] == 1:
        pixels = pixels[:, :, 0]
    if pixels.dtype.kind == "f" and pixels.size and pixels.min() >= 0 and pixels.max() <= 1:
        pixels = np.rint(255 * pixels).astype(np.uint8)
    if pixels.dtype != np.uint8 or pixels.ndim not in (2, 3) or (pixels.ndim == 3 and pixels.shape[2] != 3):
        raise UsageError(
            f"Expected a Pillow image, or pixels (H, W, 3) or (3, H, W) as uint8 or from 0 to 1 (not normalized), got "
            f"{pixels.dtype} of shape {pixels.shape} at index {index}."
        )
    return Image.fromarray(np.ascontiguousarray(pixels)).convert("RGB")

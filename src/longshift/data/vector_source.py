"""Where vectors come from: kept in the file of vectors, in the model trained on them, and compared by `predict`."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from longshift.data.embedded import vector_file

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
    """

    network: str
    weights: str
    image_size: int
    longshift: str

    def agrees(self, other: VectorSource) -> bool:
        """Whether both compute the same vectors of an image."""
        return (self.network, self.weights, self.image_size) == (other.network, other.weights, other.image_size)

    def words(self) -> str:
        """In a sentence.

        >>> VectorSource("resnet50", "1a2b3c4d5e6f7a8b", 224, "0.1.0").words()
        'resnet50 (weights 1a2b3c4d5e6f) on 224x224 pixels'
        """
        return f"{self.network} (weights {self.weights[:12]}) on {self.image_size}x{self.image_size} pixels"

    def to_text(self) -> str:
        """For a file."""
        return json.dumps(asdict(self))


def read_vector_source(data: str | Path) -> VectorSource | None:
    """Where the vectors of a dataset come from; None if its file does not tell."""
    try:
        return _parse(_text(vector_file(data)))
    except Exception:  # other readers report what is wrong with the file
        return None


def _text(path: Path) -> str:
    if path.suffix.lower() == ".npz":
        with np.load(path, allow_pickle=False) as file:
            return str(file[SOURCE_ARRAY]) if SOURCE_ARRAY in file.files else ""
    from pyarrow import parquet

    return ((parquet.read_schema(path).metadata or {}).get(SOURCE_METADATA) or b"").decode()


def _parse(text: str) -> VectorSource | None:
    if not text:
        return None
    value: dict[str, Any] = json.loads(text)
    return VectorSource(str(value["network"]), str(value["weights"]), int(value["image_size"]), str(value["longshift"]))

"""Logits and features of new images or vectors, read in parts; what cannot be read is skipped with the reason."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image
from torch import Tensor

from longshift.data import (
    MOST_BYTES,
    BadImage,
    decode,
    is_other_format,
    read_unlabeled,
    read_vector_source,
    resize,
)
from longshift.errors import LongshiftError, UsageError
from longshift.inference.batch_outputs import Logits, batch_size, map_batches, rows_in_batches
from longshift.inference.loading import LoadedModel, calibrated_probabilities
from longshift.inference.prediction_inputs import VECTOR_SUFFIXES, is_vectors
from longshift.io import read_limited
from longshift.progress import Tick, silent
from longshift.text import counted, some

TOLD = {  # common inputs that are not images
    ".zip": "an archive: unpack it and give the folder",
    ".csv": "a table: give the images themselves, or their paths, one per line, on standard input (-)",
    ".txt": "a text: give the images themselves, or their paths, one per line, on standard input (-)",
}
NOT_FINITE = "the model's outputs are NaN or infinite"


@dataclass(frozen=True, eq=False)
class Outputs:
    """Logits (N, classes) of the inputs that could be read, in order, and features (N, D) if they were wanted."""

    names: tuple[str, ...]
    logits: Tensor
    features: Tensor | None
    skipped: tuple[tuple[str, str], ...]

    def probabilities(self, temperature: float) -> Tensor:
        """Calibrated probabilities in float64."""
        return calibrated_probabilities(self.logits, temperature)


def collect_outputs(
    model: LoadedModel, files: Sequence[str], tick: Tick = silent, threads: int = 0, features: bool = True
) -> Outputs:
    """Logits and, if wanted, features of all inputs that can be read."""
    made = _Collected(model)
    if model.info.vectors:
        _vector_outputs(made, files, tick, threads, features)
    else:
        _image_outputs(made, files, tick, threads, features)
    return made.outputs()


def array_outputs(model: LoadedModel, array: npt.NDArray[Any], threads: int, features: bool) -> Outputs:
    """Outputs for the rows of an array, which are named by their numbers."""
    if model.info.vectors:
        if array.ndim != 2 or array.shape[1] != model.info.input_dim or array.dtype.kind not in "fiu":
            raise UsageError(f"Expected vectors (N, {model.info.input_dim}), got {array.shape} of {array.dtype}")
        stored = np.ascontiguousarray(array, dtype=np.float32)
    else:
        if array.ndim != 4 or array.shape[3] != 3 or array.dtype != np.uint8:
            raise UsageError(f"Expected images (N, height, width, 3) of uint8, got {array.shape} of {array.dtype}")
        stored = np.stack([resize(Image.fromarray(image), model.size) for image in array])
    made = _Collected(model)
    names = [str(row) for row in range(len(stored))]
    bad = made.add(names, rows_in_batches(model, torch.from_numpy(stored), features, threads))
    made.skipped.extend((name, NOT_FINITE) for name in bad)
    return made.outputs()


def _image_outputs(made: _Collected, files: Sequence[str], tick: Tick, threads: int, features: bool) -> None:
    model, size = made.model, batch_size(made.model)

    def read_one(path: str) -> Tensor | str:
        if is_vectors(path):
            return "holds vectors, but the model takes images"
        if os.path.isfile(path) and (told := TOLD.get(Path(path).suffix.lower())):
            return told
        try:
            return torch.from_numpy(resize(decode(read_limited(path, MOST_BYTES)), model.size).copy())
        except BadImage as bad:
            if is_other_format(path):  # the decoder knows some of them after all
                return "a format that is not read: convert it to JPEG or PNG"
            return f"{bad.kind}: {bad.detail}"
        except OSError as error:
            return _why_not(path, error)

    def read(part: Sequence[str]) -> tuple[tuple[list[str], list[tuple[str, str]]], Tensor | None]:
        found = [(path, read_one(path)) for path in part]
        pixels = [image for _, image in found if isinstance(image, Tensor)]
        names = [path for path, image in found if isinstance(image, Tensor)]
        skipped = [(path, reason) for path, reason in found if isinstance(reason, str)]
        return (names, skipped), torch.stack(pixels) if pixels else None

    parts = [files[start : start + size] for start in range(0, len(files), size)]
    for (names, skipped), logits in map_batches(model, read, parts, features, threads):
        made.skipped.extend(skipped)
        if logits is not None:
            made.skipped.extend((name, NOT_FINITE) for name in made.add(names, logits))
        tick(len(names) + len(skipped))


def _vector_outputs(made: _Collected, files: Sequence[str], tick: Tick, threads: int, features: bool) -> None:
    model = made.model
    for file in files:
        if not is_vectors(file):
            expected = " or ".join(VECTOR_SUFFIXES)
            made.skipped.append((file, f"the model takes vectors: expected a file that ends with {expected}"))
            continue
        try:
            x, ids, unusable = read_unlabeled(Path(file))
        except LongshiftError as error:
            made.skipped.append((file, str(error)))
            continue
        if x.shape[1] != model.info.input_dim:
            made.skipped.append((file, f"expected vectors of length {model.info.input_dim}, got {x.shape[1]}"))
            continue
        _require_same_source(model, file)
        if unusable:
            what = f"{counted(len(unusable), 'vector')} with NaN, infinite or too large numbers: {some(unusable)}"
            made.skipped.append((file, what))
        if len(x):
            found = rows_in_batches(model, torch.from_numpy(x), features, threads)
            if bad := made.add([f"{file}#{name}" for name in ids], found):
                made.skipped.append((file, f"{NOT_FINITE} for {counted(len(bad), 'vector')}: {some(bad)}"))
        tick(1)


class _Collected:
    """Outputs of a model in parts, and what was skipped. Features are large: they are kept only if they are wanted."""

    def __init__(self, model: LoadedModel) -> None:
        self.model = model
        self.names: list[str] = []
        self.skipped: list[tuple[str, str]] = []
        self.logits: list[Tensor] = []
        self.features: list[Tensor] = []

    def add(self, names: Sequence[str], found: Logits) -> list[str]:
        """Keep the outputs of these inputs; those that are not finite are left out, and their names returned."""
        logits, features = found
        good = logits.isfinite().all(1)
        if features is not None:
            good &= features.isfinite().all(1)
            self.features.append(features[good])
        self.logits.append(logits[good])
        self.names.extend(name for name, kept in zip(names, good.tolist(), strict=True) if kept)
        return [name for name, kept in zip(names, good.tolist(), strict=True) if not kept]

    def outputs(self) -> Outputs:
        """All of them."""
        logits = torch.cat(self.logits) if self.logits else torch.empty(0, len(self.model.classes))
        features = torch.cat(self.features) if self.features else None
        return Outputs(tuple(self.names), logits, features, tuple(self.skipped))


def _require_same_source(model: LoadedModel, file: str) -> None:
    """Vectors of another network have the same length at times, and every prediction would be wrong."""
    own, found = model.info.vector_source, read_vector_source(file)
    if own and found and not own.agrees(found):
        raise LongshiftError(
            f"Expected vectors of {own.words()}, on which {model.folder} was trained, got vectors of {found.words()} "
            f"in {file}. Embed the images again: longshift embed IMAGES --unlabeled --backbone {own.network} "
            f"--weights FILE --image-size {own.image_size} --out {file}"
        )


def _why_not(path: str, error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "no file matches this pattern" if glob.has_magic(path) else "there is no such file or folder"
    return f"unreadable: {error.strerror or error}"

"""Logits and features of new images or vectors, in batches; an input that cannot be used is skipped with the reason."""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image
from torch import Tensor

from longshift.array_types import IntArray
from longshift.data import (
    HUB,
    PACS_FEATURES,
    BadImage,
    SampleReader,
    cores,
    is_dataset,
    is_hidden,
    is_image,
    is_other_format,
    list_folder,
    list_samples,
    load_dataset,
    missing_path,
    ordered_map,
    read_pixels,
    read_unlabeled,
    read_vector_source,
    resize,
    sample_file,
    vector_file,
)
from longshift.errors import LongshiftError, UsageError
from longshift.inference.loading import LoadedModel, calibrated_probabilities
from longshift.progress import Tick, silent
from longshift.text import counted, some
from longshift.training import FrozenNetwork, ImageSet, Runtime, image_features, use_threads

In = TypeVar("In")
Note = TypeVar("Note")
Logits = tuple[Tensor, "Tensor | None"]  # with features, if they are wanted

VECTOR_SUFFIXES = (".npz", ".parquet")
AHEAD = 2  # batches per processor that wait in memory
NOT_FINITE = "the model's outputs are NaN or infinite"


# Which files


def expand_inputs(items: Iterable[str | os.PathLike[str]], vectors: bool = False) -> list[str]:
    """Samples in order: a folder gives all images below it, a pattern (* ? []) its matches, the rest is taken as is.

    An archive, a table or a Hugging Face dataset gives all its images, whether they have classes or not. For a model of
    `vectors`, a folder gives its .npz and .parquet files, and `pacs-features` the embedded file.
    """
    found: list[str] = []
    for item in items:
        text = str(vector_file(item)) if vectors and item == PACS_FEATURES else os.fspath(item)
        if not vectors and is_dataset(text):
            try:
                found.extend(list_samples(text) or [text])
            except LongshiftError:  # `_read_image` says why
                found.append(text)
            continue
        if os.path.isdir(text) and vectors:
            below = (path for path in Path(text).rglob("*") if _is_vectors(path.name) and path.is_file())
            found.extend(sorted(map(str, below)))
        elif os.path.isdir(text):
            listed = list_folder(Path(text))
            found.extend(os.path.join(text, path) for path in sorted((*listed.images, *listed.others)))
        elif not os.path.lexists(text) and glob.has_magic(text):
            matches = sorted(glob.glob(text, recursive=True))
            found.extend([match for match in matches if _is_input(match)] or [text])
        else:
            found.append(text)
    return list(dict.fromkeys(found))


def require_inputs(items: Sequence[str | os.PathLike[str]], vectors: bool = False) -> None:
    """Raise if none of the given inputs exists; patterns that match nothing are left to `expand_inputs`."""
    if not items or any(
        os.path.lexists(sample_file(os.fspath(item)))
        or str(item).startswith(HUB)
        or glob.has_magic(os.fspath(item))
        or (vectors and item == PACS_FEATURES)
        for item in items
    ):
        return
    first = missing_path(items[0])
    if len(items) > 1:
        raise LongshiftError(f"None of the {len(items)} inputs exists. The first: {first}")
    raise LongshiftError(first)


def listed_paths(inputs: Iterable[str | os.PathLike[str]]) -> list[str | os.PathLike[str]]:
    """The given paths as a list; a TypeError for anything else."""
    single = isinstance(inputs, (str, os.PathLike)) or not isinstance(inputs, Iterable)
    listed: list[Any] = [inputs] if single else list(inputs)
    wrong = [item for item in listed if not isinstance(item, (str, os.PathLike))]
    if wrong:
        raise TypeError(
            "Expected `inputs` to be paths, or an array: vectors (N, length) or images (N, height, width, 3) of type "
            f"uint8, got {type(wrong[0]).__name__}."
        )
    return listed


def _is_vectors(path: str) -> bool:
    return vector_file(path).suffix.lower() in VECTOR_SUFFIXES


def _is_input(path: str) -> bool:
    known = is_image(path) or _is_vectors(path)
    return known and os.path.isfile(path) and not is_hidden(os.path.basename(path))


# What the model gives for them


@dataclass(frozen=True, eq=False)
class Outputs:
    """Logits (N, classes) of the inputs that could be used, in order, and features (N, D) if they were wanted."""

    names: tuple[str, ...]
    logits: Tensor
    features: Tensor | None
    skipped: tuple[tuple[str, str], ...]

    def probabilities(self, temperature: float) -> Tensor:
        """Calibrated probabilities in float64."""
        return calibrated_probabilities(self.logits, temperature)


def collect_outputs(
    model: LoadedModel,
    files: Sequence[str],
    tick: Tick = silent,
    runtime: Runtime | None = None,
    features: bool = True,
) -> Outputs:
    """Logits and, if wanted, features of all inputs that can be used."""
    runtime = runtime or Runtime()
    if model.info.vectors:
        return _join(model, _vector_parts(model, files, runtime, features), tick)
    with SampleReader() as reader:
        if model.network is not None:
            return _join(model, [_frozen_part(model, model.network, files, reader, runtime, features, tick)])
        return _join(model, _image_parts(model, files, reader, runtime, features), tick)


def array_outputs(model: LoadedModel, array: npt.NDArray[Any], runtime: Runtime, features: bool) -> Outputs:
    """Outputs for the rows of an array, which are named by their numbers."""
    if model.info.vectors:
        if array.ndim != 2 or array.shape[1] != model.info.input_dim or array.dtype.kind not in "fiu":
            raise UsageError(f"Expected vectors (N, {model.info.input_dim}), got {array.shape} of {array.dtype}")
        stored = np.ascontiguousarray(array, dtype=np.float32)
    else:
        if array.ndim != 4 or array.shape[3] != 3 or array.dtype != np.uint8:
            raise UsageError(f"Expected images (N, height, width, 3) of uint8, got {array.shape} of {array.dtype}")
        stored = np.stack([resize(Image.fromarray(image), model.size, model.info.preprocessing) for image in array])
    names = [str(row) for row in range(len(stored))]
    return _join(model, [Part(names, [], row_outputs(model, stored, None, features, runtime))])


@dataclass(frozen=True, eq=False)
class Part:
    """Some of the inputs: those with outputs, and those that are skipped, with the reason."""

    names: list[str]
    skipped: list[tuple[str, str]]
    found: Logits | None = None
    file: str = ""  # that all of them come from


def _join(model: LoadedModel, parts: Iterable[Part], tick: Tick = silent) -> Outputs:
    """All parts, without the inputs whose outputs are not finite. Features are large: kept only if they are wanted."""
    names, skipped = [], []
    logits, features = [torch.empty(0, len(model.classes))], []
    for part in parts:
        skipped += part.skipped
        if part.found is not None:
            rows, wanted = part.found
            good = rows.isfinite().all(1)
            if wanted is not None:
                good &= wanted.isfinite().all(1)
                features.append(wanted[good])
            logits.append(rows[good])
            names += [name for name, kept in zip(part.names, good.tolist(), strict=True) if kept]
            bad = [name for name, kept in zip(part.names, good.tolist(), strict=True) if not kept]
            if bad and part.file:
                skipped.append((part.file, f"{NOT_FINITE} for {counted(len(bad), 'vector')}: {some(bad)}"))
            else:
                skipped += [(name, NOT_FINITE) for name in bad]
        tick(1 if part.file else len(part.names) + len(part.skipped))
    return Outputs(tuple(names), torch.cat(logits), torch.cat(features) if features else None, tuple(skipped))


def row_outputs(
    model: LoadedModel,
    stored: npt.NDArray[Any],
    rows: IntArray | None,
    features: bool,
    runtime: Runtime | None = None,
) -> Logits:
    """Outputs for rows (default: all) of stored pixels or vectors, which may be on the disk."""
    chosen = np.arange(len(stored)) if rows is None else rows
    runtime, images = runtime or Runtime(), stored.dtype == np.uint8
    size = _image_batch(model, runtime) if images else runtime.eval_batch
    # Products of vectors are too small to share: two threads that switch between them are slower than one.
    threads = runtime.threads or (cores() if images else 1)

    def read(part: IntArray) -> tuple[None, Tensor]:
        return None, torch.from_numpy(np.array(stored[part]))

    parts = [chosen[start : start + size] for start in range(0, len(chosen), size)]
    found = [outputs for _, outputs in _map_batches(model, read, parts, features, threads) if outputs is not None]
    kept = [part[1] for part in found if part[1] is not None]
    return torch.cat([part[0] for part in found]), torch.cat(kept) if kept else None


def _image_batch(model: LoadedModel, runtime: Runtime) -> int:
    return runtime.images_at_once(model.device.type == "cpu")


def _map_batches(
    model: LoadedModel,
    read: Callable[[In], tuple[Note, Tensor | None]],
    items: Iterable[In],
    features: bool,
    threads: int,
) -> Iterator[tuple[Note, Logits | None]]:
    """Read each item, which gives a note and a batch (None: nothing to compute), and compute; results are in order.

    On the CPU, each batch is computed by one thread. So the numbers do not depend on the number of threads, and no
    thread waits for another, as threads that share one product do: on a busy machine, two of those took twice as long
    as one.
    """
    on_cpu = model.device.type == "cpu"

    def compute(batch: Tensor | None) -> Logits | None:
        if batch is None:
            return None
        return model.outputs(batch) if features else (model.logits(batch), None)

    def work(item: In) -> tuple[Note, Tensor | None, Logits | None]:
        note, batch = read(item)
        return (note, None, compute(batch)) if on_cpu else (note, batch, None)

    with use_threads(1 if on_cpu else 0):
        for note, batch, found in ordered_map(work, items, threads, AHEAD * threads):
            yield note, found if on_cpu else compute(batch)


def _frozen_part(
    model: LoadedModel, network: FrozenNetwork, files: Sequence[str], reader: SampleReader, runtime: Runtime,
    features: bool, tick: Tick,
) -> Part:  # fmt: skip
    """Inputs of a model with a frozen network, whose features are kept for whoever needs them next."""

    def read(index: int) -> bytes:
        try:
            return reader.read(files[index])
        except (OSError, LongshiftError) as error:
            raise BadImage("unreadable", str(error)) from error

    def hashed(index: int) -> str:
        if is_dataset(files[index]):
            return ""
        try:
            return hashlib.sha256(read(index)).hexdigest()
        except BadImage:
            return ""

    runtime = replace(runtime, device=str(model.device))
    hashes = list(ordered_map(hashed, range(len(files)), runtime.threads))
    rows = image_features(ImageSet(hashes, read), network, model.size, runtime=runtime, tick=tick)
    good = np.isfinite(rows).all(axis=1)
    bad = {files[i]: _read_image(reader, files[i], model) for i in np.flatnonzero(~good).tolist()}
    names = [files[i] for i in np.flatnonzero(good).tolist()]
    found = row_outputs(model.head, rows, np.flatnonzero(good), features, runtime) if names else None
    return Part(names, [(path, why if isinstance(why, str) else NOT_FINITE) for path, why in bad.items()], found)


def _image_parts(
    model: LoadedModel, files: Sequence[str], reader: SampleReader, runtime: Runtime, features: bool
) -> Iterator[Part]:
    size = _image_batch(model, runtime)

    def read(batch: Sequence[str]) -> tuple[Part, Tensor | None]:
        found = [(path, _read_image(reader, path, model)) for path in batch]
        pixels = [image for _, image in found if isinstance(image, Tensor)]
        names = [path for path, image in found if isinstance(image, Tensor)]
        skipped = [(path, reason) for path, reason in found if isinstance(reason, str)]
        return Part(names, skipped), torch.stack(pixels) if pixels else None

    batches = [files[start : start + size] for start in range(0, len(files), size)]
    for part, logits in _map_batches(model, read, batches, features, runtime.threads or cores()):
        yield replace(part, found=logits)


def _read_image(reader: SampleReader, path: str, model: LoadedModel) -> Tensor | str:
    """Pixels, or why there are none."""
    if is_dataset(path):  # otherwise its samples were listed
        try:
            return f"expected images, got {len(load_dataset(path, needs=()))} vectors"
        except LongshiftError as error:
            return str(error)
    if os.path.isfile(path) and Path(path).suffix.lower() == ".txt":
        return "a text: give the images themselves, or their paths, one per line, on standard input (-)"
    try:
        return torch.from_numpy(read_pixels(reader.read(path), model.size, model.info.preprocessing).copy())
    except LongshiftError as error:
        return str(error)
    except BadImage as bad:
        if is_other_format(path):  # the decoder knows some of them after all
            return "a format that is not read: convert it to JPEG or PNG"
        return f"{bad.kind}: {bad.detail}"
    except FileNotFoundError:
        return "no file matches this pattern" if glob.has_magic(path) else "there is no such file or folder"
    except OSError as error:
        return f"unreadable: {error.strerror or error}"


def _vector_parts(model: LoadedModel, files: Sequence[str], runtime: Runtime, features: bool) -> Iterator[Part]:
    for file in files:
        if not _is_vectors(file):
            expected = " or ".join(VECTOR_SUFFIXES)
            yield Part([], [(file, f"the model takes vectors: expected a file that ends with {expected}")], file=file)
            continue
        try:
            x, ids, unusable = read_unlabeled(file)
            if x.shape[1] != model.info.input_dim:
                raise LongshiftError(f"expected vectors of length {model.info.input_dim}, got {x.shape[1]}")
        except LongshiftError as error:
            yield Part([], [(file, str(error))], file=file)
            continue
        _require_same_source(model, file)
        skipped = []
        if unusable:
            what = f"{counted(len(unusable), 'vector')} with NaN, infinite or too large numbers: {some(unusable)}"
            skipped.append((file, what))
        found = row_outputs(model, x, None, features, runtime) if len(x) else None
        yield Part([f"{file}#{name}" for name in ids], skipped, found, file)


def _require_same_source(model: LoadedModel, file: str) -> None:
    """Vectors of another network have the same length at times, and every prediction would be wrong."""
    own, found = model.info.vector_source, read_vector_source(file)
    if own and found and not own.agrees(found):
        raise LongshiftError(
            f"Expected vectors of {own.words()}, on which {model.folder} was trained, got vectors of {found.words()} "
            f"in {file}. Embed the images again: longshift embed IMAGES --unlabeled --backbone {own.network} "
            f"--weights FILE --image-size {own.image_size} --preprocessing {own.preprocessing} --out {file}"
        )

"""Predictions for new images or vectors: class, calibrated probability, the next best, and whether to trust it."""

from __future__ import annotations

import csv
import glob
import io
import os
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image
from torch import Tensor

from longshift.data import (
    MOST_BYTES,
    PACS_FEATURES,
    BadImage,
    decode,
    is_hidden,
    is_image,
    is_other_format,
    list_folder,
    read_unlabelled,
    read_vector_source,
    resize,
    vector_file,
)
from longshift.errors import LongshiftError, UsageError
from longshift.files import read_limited
from longshift.inference.batch_outputs import Logits, batch_size, map_batches, rows_in_batches
from longshift.inference.loading import LoadedModel, calibrated_probabilities, load_model
from longshift.inference.site_estimate import FEWEST, SiteEstimate, estimate_site, odd_mix, read_signals
from longshift.progress import Tick, silent
from longshift.text import counted, csv_cell, some

UNSURE = 0.5
VECTOR_SUFFIXES = (".npz", ".parquet")
TOLD = {  # common inputs that are not images
    ".zip": "an archive: unpack it and give the folder",
    ".csv": "a table: give the images themselves, or their paths, one per line, on standard input (-)",
    ".txt": "a text: give the images themselves, or their paths, one per line, on standard input (-)",
}


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


@dataclass(frozen=True)
class Prediction:
    """One input with its `top` classes, most probable first."""

    path: str
    top: tuple[tuple[str, float], ...]
    unsure: bool

    @property
    def label(self) -> str:
        """The most probable class."""
        return self.top[0][0]

    @property
    def probability(self) -> float:
        """Its calibrated probability."""
        return self.top[0][1]

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "path": self.path,
            "class": self.label,
            "probability": self.probability,
            "unsure": self.unsure,
            "top": [{"class": name, "probability": p} for name, p in self.top],
        }


@dataclass(frozen=True)
class Predictions:
    """All predictions, the inputs that could not be read (path, reason), and a warning about the model."""

    rows: tuple[Prediction, ...]
    skipped: tuple[tuple[str, str], ...]
    warning: str = ""
    unsure_below: float = UNSURE
    sure_accuracy: float | None = None  # of the predictions that are not unsure, at the held-out sites of the fit
    estimate: SiteEstimate | None = None  # the accuracy to expect at this site
    odd_mix: str = ""  # on a class that is predicted far more often than it occurs at any training site
    outputs: Outputs | None = field(default=None, compare=False, repr=False)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            **({"warning": self.warning} if self.warning else {}),
            **({"site": self.estimate.to_json()} if self.estimate else {}),
            **({"odd_class_mix": self.odd_mix} if self.odd_mix else {}),
            "unsure_below": self.unsure_below,
            **({"sure_accuracy": self.sure_accuracy} if self.sure_accuracy is not None else {}),
            "predictions": [row.to_json() for row in self.rows],
            "skipped": [{"path": path, "reason": reason} for path, reason in self.skipped],
        }

    def to_csv(self) -> str:
        """One line per input: path, class, probability, unsure, then class_2, probability_2, ..."""
        top = len(self.rows[0].top) if self.rows else 1
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        extra = [name for k in range(2, top + 1) for name in (f"class_{k}", f"probability_{k}")]
        writer.writerow(["path", "class", "probability", "unsure", *extra])
        for row in self.rows:
            rest = [value for name, p in row.top[1:] for value in (csv_cell(name), f"{p:.6f}")]
            unsure = "yes" if row.unsure else "no"
            writer.writerow([csv_cell(row.path), csv_cell(row.label), f"{row.probability:.6f}", unsure, *rest])
        return text.getvalue()


def expand_inputs(items: Iterable[str | os.PathLike[str]], vectors: bool = False) -> list[str]:
    """Files in order: a folder gives all images below it, a pattern (* ? []) its matches, the rest is taken as is.

    For a model of `vectors`, a folder gives its .npz and .parquet files, and `pacs-features` the embedded file.
    """
    found: list[str] = []
    for item in items:
        text = str(vector_file(item)) if vectors and item == PACS_FEATURES else os.fspath(item)
        if os.path.isdir(text):
            found.extend(_vector_files(text) if vectors else _image_files(text))
        elif not os.path.lexists(text) and glob.has_magic(text):
            matches = sorted(glob.glob(text, recursive=True))
            found.extend([match for match in matches if _is_input(match)] or [text])
        else:
            found.append(text)
    return list(dict.fromkeys(found))


def _image_files(folder: str) -> list[str]:
    found = list_folder(Path(folder))
    return [os.path.join(folder, path) for path in sorted((*found.images, *found.others))]  # others: to say so


def _vector_files(folder: str) -> list[str]:
    return sorted(str(path) for path in Path(folder).rglob("*") if _is_vectors(path.name) and path.is_file())


def _is_vectors(path: str) -> bool:
    return Path(path).suffix.lower() in VECTOR_SUFFIXES


def _is_input(path: str) -> bool:
    known = is_image(path) or _is_vectors(path)
    return known and os.path.isfile(path) and not is_hidden(os.path.basename(path))


def predict(
    model: LoadedModel | Path | str,
    inputs: Iterable[str | os.PathLike[str]] | npt.NDArray[Any],
    *,
    top_k: int = 3,
    unsure: float | None = None,
    device: str = "auto",
    threads: int = 0,
    tick: Tick = silent,
    keep_outputs: bool = False,
) -> Predictions:
    """Predict images or, for a model of vectors, the rows of .npz and .parquet files.

    Args:
        model: A loaded model, or the folder of a run or fit.
        inputs: Files, folders or patterns ("new_site/**/*.png"); or an array: vectors (N, length), or images
            (N, height, width, 3) of type uint8.
        top_k: Number of classes per prediction.
        unsure: A prediction is unsure if its calibrated probability is below this. By default, it is the lowest one
            above which 90 % were right at the sites that `fit` held out or, if none reaches that, the best one; 0.5
            for a model without held-out sites.
        device: Device for a folder: "auto", "cpu", "cuda" or "cuda:1".
        threads: Batches that are computed at the same time on the CPU; 0: one for vectors, one per processor for
            images. The predictions do not depend on it.
        tick: Function that is called once per input, for a progress bar.
        keep_outputs: Keep the logits and features of all inputs in `outputs`, which takes memory.

    Returns:
        The predictions in `rows`; inputs that cannot be read in `skipped`, with the reason; in `warning` whether the
        model was no better than guessing at unseen sites; and for a model of `fit`, in `estimate` the accuracy to
        expect at this site, from the predictions alone, and in `sure_accuracy` the share of predictions above the
        default of `unsure` that were right at the held-out sites.

    Raises:
        LongshiftError: If the model cannot be loaded, or vectors are of another network than those of its training.
        TypeError: If the inputs are neither paths nor an array.

    Example:
        >>> found = longshift.predict("fits/hospitals", ["new_site/"])  # doctest: +SKIP
        >>> [(row.path, row.label, row.probability) for row in found.rows]  # doctest: +SKIP
    """
    loaded = model if isinstance(model, LoadedModel) else load_model(model, device=device)
    if top_k < 1:
        raise UsageError(f"expected top_k of 1 or more, got {top_k}")
    if unsure is not None and not 0 <= unsure <= 1:
        raise UsageError(f"expected unsure between 0 and 1, got {unsure}")
    if loaded.warning and loaded is not model:  # otherwise the caller has it in `model.warning`
        warnings.warn(loaded.warning, UserWarning, stacklevel=2)
    features = keep_outputs or loaded.knowledge is not None  # which compares them with those of the held-out sites
    if isinstance(inputs, np.ndarray):
        outputs = _array_outputs(loaded, inputs, threads, features)
    else:
        files = expand_inputs(_paths(inputs), loaded.info.vectors)
        outputs = collect_outputs(loaded, files, tick, threads, features)
    rule = loaded.knowledge.sure if loaded.knowledge and unsure is None else None
    below = rule.threshold if rule else UNSURE if unsure is None else unsure
    rows = rank(outputs.names, outputs.probabilities(loaded.temperature), loaded.classes, top_k, below)
    odd = odd_mix(loaded.classes, loaded.info.counts, outputs.logits.argmax(1).numpy())
    return Predictions(
        tuple(rows), outputs.skipped, loaded.warning, below, rule.accuracy if rule else None,
        estimate_from(loaded, outputs), odd, outputs if keep_outputs else None,
    )  # fmt: skip


def _paths(inputs: Iterable[str | os.PathLike[str]]) -> list[str | os.PathLike[str]]:
    listed: list[str | os.PathLike[str]] = []
    if isinstance(inputs, (str, os.PathLike)) or not isinstance(inputs, Iterable):
        listed.append(inputs)
    else:
        listed.extend(inputs)
    wrong = [item for item in listed if not isinstance(item, (str, os.PathLike))]
    if wrong:
        raise TypeError(
            "Expected `inputs` to be paths, or an array: vectors (N, length) or images (N, height, width, 3) of type "
            f"uint8, got {type(wrong[0]).__name__}."
        )
    return listed


def estimate_from(model: LoadedModel, outputs: Outputs) -> SiteEstimate | None:
    """The accuracy to expect at the site of these outputs; None for few samples or without held-out sites."""
    if model.knowledge is None or outputs.features is None or len(outputs.names) < FEWEST:
        return None
    signals = read_signals(
        model.knowledge.reference, outputs.logits.numpy(), outputs.features.numpy(), model.temperature
    )
    return estimate_site(model.knowledge, signals)


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


def _array_outputs(model: LoadedModel, array: npt.NDArray[Any], threads: int, features: bool) -> Outputs:
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
    made.add(
        [str(row) for row in range(len(stored))], rows_in_batches(model, torch.from_numpy(stored), features, threads)
    )
    return made.outputs()


def _image_outputs(made: _Collected, files: Sequence[str], tick: Tick, threads: int, features: bool) -> None:
    model, size = made.model, batch_size(made.model)

    def read_one(path: str) -> Tensor | str:
        if _is_vectors(path):
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
            made.add(names, logits)
        tick(len(names) + len(skipped))


def _vector_outputs(made: _Collected, files: Sequence[str], tick: Tick, threads: int, features: bool) -> None:
    model = made.model
    for file in files:
        if not _is_vectors(file):
            expected = " or ".join(VECTOR_SUFFIXES)
            made.skipped.append((file, f"the model takes vectors: expected a file that ends with {expected}"))
            continue
        try:
            x, ids, unusable = read_unlabelled(Path(file))
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
            made.add([f"{file}#{name}" for name in ids], found)
        tick(1)


class _Collected:
    """Outputs of a model in parts, and what was skipped. Features are large: they are kept only if they are wanted."""

    def __init__(self, model: LoadedModel) -> None:
        self.model = model
        self.names: list[str] = []
        self.skipped: list[tuple[str, str]] = []
        self.logits: list[Tensor] = []
        self.features: list[Tensor] = []

    def add(self, names: Sequence[str], found: Logits) -> None:
        """Keep the outputs of these inputs."""
        self.names.extend(names)
        self.logits.append(found[0])
        if found[1] is not None:
            self.features.append(found[1])

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
            f"in {file}. Embed the images again: longshift embed IMAGES --unlabelled --backbone {own.network} "
            f"--weights FILE --image-size {own.image_size} --out {file}"
        )


def _why_not(path: str, error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "no file matches this pattern" if glob.has_magic(path) else "there is no such file or folder"
    return f"unreadable: {error.strerror or error}"


def rank(
    names: Sequence[str], probabilities: Tensor, classes: Sequence[str], top_k: int, unsure: float
) -> list[Prediction]:
    """The best classes of each row."""
    values, order = probabilities.topk(min(top_k, len(classes)), dim=1)
    return [
        Prediction(name, tuple((classes[k], p) for k, p in zip(ks, ps, strict=True)), ps[0] < unsure)
        for name, ks, ps in zip(names, order.tolist(), values.tolist(), strict=True)
    ]

"""Score a model on labeled data of one or more sites, and compare with what it expected there without the labels."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from longshift.array_types import IntArray
from longshift.data import Manifest, Row, holds_images, list_folder, load_dataset, open_store
from longshift.errors import LongshiftError
from longshift.inference.batch_outputs import batch_size, map_batches
from longshift.inference.loading import FINAL_FOLDER, PLAN_FILE, LoadedModel, Weights, load_model
from longshift.inference.model_outputs import Outputs
from longshift.inference.prediction import estimate_from
from longshift.inference.site_estimate import SiteEstimate
from longshift.inference.training_inputs import held_out_words
from longshift.metrics import Evaluation, evaluate_predictions, expected_calibration_error
from longshift.progress import Bar, no_bar
from longshift.text import agree, counted, some
from longshift.training import RunFolder, read_config, read_result

Seen = Literal["", "site", "data"]


@dataclass(frozen=True)
class SiteResult:
    """What was found at a site, and what was expected there without labels (None: too few samples, or no fit)."""

    site: str
    found: Evaluation
    ece: float  # of the calibrated probabilities
    expected: SiteEstimate | None
    seen: Seen = ""  # "site": the model was trained on a site of this name; "data": on these very data

    @property
    def kept(self) -> bool | None:
        """Whether the interval held the accuracy, both rounded as `sentence` prints them."""
        reach = self.expected.accuracy if self.expected else None
        if reach is None:
            return None
        return round(100 * reach.low) <= round(100 * self.found.accuracy, 1) <= round(100 * reach.high)

    def sentence(self) -> str:
        """Promised against found."""
        found = f"{self.site}: {100 * self.found.accuracy:.1f}% of {self.found.n} samples correct"
        if self.expected is None:
            return f"{found}."
        reach = self.expected.accuracy
        side = "inside" if self.kept else "outside"
        return (
            f"{found}; expected without labels: {100 * reach.mean:.0f}% ({100 * reach.low:.0f} to "
            f"{100 * reach.high:.0f}%), so the truth is {side} the interval."
        )

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        expected = self.expected.to_json() if self.expected else None
        return {
            "site": self.site, **self.found.to_dict(), "balanced_accuracy": self.found.balanced_accuracy,
            "calibrated_ece": self.ece, "expected": expected, "inside_interval": self.kept,
            "seen_in_training": self.seen,
        }  # fmt: skip


def evaluate_site(
    model: LoadedModel | Path | str,
    data: str | Path,
    weights: Weights = "selected",
    device: str = "auto",
    cache: Path | None = None,
    bar: Bar = no_bar,
) -> list[SiteResult]:
    """Measure a model on labeled data: accuracy, classes, confusion, calibration, and promised against found.

    Args:
        model: A loaded model, or the folder of a run or fit.
        data: A folder class/image of one site, or what `load_dataset` takes (site/class/image, a table, vectors).
        weights: "selected" or "averaged", for a folder.
        device: Device for a folder.
        cache: Folder of decoded images.
        bar: From a label and a number of samples to a context manager that shows progress while images are decoded.

    Returns:
        One result per site.

    Raises:
        LongshiftError: If the data have no labels or classes that the model does not know, or cannot be read.

    Example:
        >>> for result in evaluate_site("fits/hospitals", "labeled_site/"):  # doctest: +SKIP
        ...     print(result.sentence())
    """
    loaded = model if isinstance(model, LoadedModel) else load_model(model, weights, device)
    _require_labels(loaded, Path(data))
    manifest = labeled_data(data)
    unknown = [name for name in manifest.classes if name not in loaded.classes]
    if unknown:
        raise LongshiftError(
            f"Expected the classes of the model ({some(loaded.classes)}), got {some(unknown)} in {manifest.name}. "
            "Rename or remove them."
        )
    if manifest.vectors != loaded.info.vectors:
        takes, has = ("vectors", "images") if loaded.info.vectors else ("images", "vectors")
        raise LongshiftError(f"Expected {takes}, which the model takes, got {has} in {manifest.name}")
    with bar("reading", len(manifest)) as tick:
        store = open_store(manifest, loaded.size, cache, tick)
    if manifest.vectors and store.inputs.shape[1] != loaded.info.input_dim:
        raise LongshiftError(f"Expected vectors of length {loaded.info.input_dim}, got {store.inputs.shape[1]}")
    place = np.array([loaded.classes.index(name) for name in manifest.classes], dtype=np.int64)
    labels = place[manifest.labels]
    seen: Seen = "data" if store.version and store.version == _training_version(loaded) else "site"
    return [
        _result(
            loaded, manifest, name, np.flatnonzero(manifest.domains == d), labels, store.inputs,
            seen if name in loaded.info.sources else "",
        )
        for d, name in enumerate(manifest.domain_names)
    ]  # fmt: skip


def _training_version(model: LoadedModel) -> str:
    """The version of the data that a model was trained on; "" where its folder does not tell."""
    folder = RunFolder(model.folder)
    try:
        recorded = read_config(folder).data_version
        return recorded or str((read_result(folder) if folder.finished() else {}).get("data_version") or "")
    except LongshiftError:  # the model can be used without these files
        return ""


def seen_words(model: LoadedModel, results: Sequence[SiteResult]) -> str:
    """A line on sites that the model was trained on, and the accuracy at held-out ones; "" if there are none."""
    seen = [result for result in results if result.seen]
    if not seen:
        return ""
    names = some([result.site for result in seen])
    were = agree(len(seen), "was a training site", "were training sites")
    if all(result.seen == "data" for result in seen):
        first = f"{names} {were} of this model, and these are the data it was trained on: expect less at a new site."
    else:
        first = (
            f"{names} {were} of this model, by {agree(len(seen), 'its name', 'their names')}. If these are the same "
            "samples, expect less at a new site."
        )
    return first + (held_out_words(model) or " Evaluate on data of a site that was not used in training.")


def _require_labels(model: LoadedModel, path: Path) -> None:
    """Raise for a folder whose images lie in no folder of a class."""
    if not path.is_dir() or not holds_images(path):
        return
    images = list_folder(path).images
    loose = sorted(name for name in images if "/" not in name)
    if not loose or any(name.count("/") > 1 for name in images):  # the latter is a dataset with misplaced images
        return
    of_fit = model.folder.name == FINAL_FOLDER and (model.folder.parent / PLAN_FILE).exists()
    called = shlex.quote(str(model.folder.parent if of_fit else model.folder))
    name = path.resolve().name
    if name in model.classes and len(loose) == len(images):
        raise LongshiftError(
            f"Expected images arranged as class/image, got {path}, the images of one class ({name}). Give the folder "
            f"above it: longshift evaluate {called} {shlex.quote(os.path.normpath(path / os.pardir))}"
        )
    raise LongshiftError(
        f"Expected images arranged as class/image in {path}, got {counted(len(loose), 'image')} in no class folder: "
        f"{some(loose, 3)}. `longshift evaluate` needs labels: put each image into a folder named by its class "
        f"({some(model.classes)}). Without labels, run: longshift predict {called} {shlex.quote(str(path))}"
    )


def labeled_data(data: str | Path) -> Manifest:
    """A dataset; a folder whose images all lie in class/ is one site."""
    path = Path(data)
    if path.is_dir():
        images = list_folder(path).images
        if images and all(name.count("/") == 1 for name in images):
            site = path.resolve().name
            return Manifest.from_rows(site, path, [Row(site, name.split("/", 1)[0], name) for name in images])
    return load_dataset(data)


def _result(
    model: LoadedModel, manifest: Manifest, site: str, chosen: IntArray, labels: IntArray, inputs: Any, seen: Seen
) -> SiteResult:
    size = batch_size(model)
    places = [chosen[start : start + size] for start in range(0, len(chosen), size)]

    def read(part: IntArray) -> tuple[None, torch.Tensor]:
        return None, torch.from_numpy(np.array(inputs[part]))

    parts = [found for _, found in map_batches(model, read, places, features=True) if found is not None]
    features = torch.cat([part[1] for part in parts if part[1] is not None])
    names = tuple(manifest.paths[i] for i in chosen.tolist())
    outputs = Outputs(names, torch.cat([part[0] for part in parts]), features, ())
    found = evaluate_predictions(
        outputs.logits, labels[chosen], np.zeros(len(chosen), dtype=np.int64), model.classes, (site,), source=site
    )
    ece = expected_calibration_error(outputs.logits.double() / model.temperature, labels[chosen])
    return SiteResult(site, found, ece, estimate_from(model, outputs), seen)

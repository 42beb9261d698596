"""`longshift adapt`: refit the last layer of a model with labeled samples of a new site; the old model is kept."""

from __future__ import annotations

import csv
import io
import os
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from longshift.data import list_folder
from longshift.errors import LongshiftError, UsageError, unknown_name
from longshift.fitting.data_summary import lines
from longshift.fitting.head_refit import Head, HeadComparison, Samples, compare_heads, refit_head
from longshift.inference import LoadedModel, collect_outputs, load_model, read_memory, write_memory
from longshift.io import (
    MOST_TEXT,
    folder_exists,
    read_json,
    read_limited,
    replacing_folder,
    require_writable,
    write_json,
)
from longshift.metrics import fit_temperature
from longshift.nn import Network
from longshift.progress import Tick, silent
from longshift.text import from_csv_cell, some
from longshift.training import RunFolder, Runtime, checkpoint

FEWEST = 10  # labels


@dataclass(frozen=True, eq=False)
class Adapted:
    """The folder of the adapted model, and how it compares with the old one."""

    folder: Path
    comparison: HeadComparison
    labels: dict[str, int]  # per class
    skipped: tuple[tuple[str, str], ...]

    def findings(self) -> list[str]:
        """What was done, and how both models compare."""
        return lines("adapt.txt.j2", labels=self.labels, found=self.comparison)


def adapt(
    model: Path | str,
    labeled: Path | str,
    out: Path | str | None = None,
    device: str = "auto",
    tick: Tick = silent,
    threads: int = 0,
    cache: Path | None = None,
) -> Adapted:
    """Refit the last layer of a model with labeled samples of a new site, on frozen features.

    The samples are one more domain next to known samples of the training sites, which the model's folder keeps.

    Args:
        model: The folder of a fit or run.
        labeled: A CSV file with the columns path and label (rows without a label are left out), or a folder
            class/image; of vectors, paths are FILE.npz#ID.
        out: Folder of the adapted model; by default the name of the model's folder with "-adapted".
        device: "auto", "cpu", "cuda" or "cuda:1".
        tick: Function that is called once per file, for a progress bar.
        threads: Threads on the CPU; 0: one per processor.
        cache: Folder that keeps features; by default $LONGSHIFT_CACHE.

    Returns:
        The new folder and the comparison of both models, cross-validated on the labels.

    Raises:
        LongshiftError: If there are too few labels or unknown classes, or the folder exists.

    Example:
        >>> done = adapt("fits/hospitals", "labels.csv")  # doctest: +SKIP
        >>> done.comparison.clear, done.folder  # doctest: +SKIP
    """
    target = Path(out) if out else Path(f"{os.path.normpath(model)}-adapted")
    if target.exists():
        raise folder_exists(target)
    require_writable(target)
    loaded = load_model(model, device=device)
    old = classifier_head(loaded)
    rows = read_labels(Path(labeled), loaded.classes)
    files = list(dict.fromkeys(name.rpartition("#")[0] if loaded.info.vectors else name for name, _ in rows))
    outputs = collect_outputs(loaded, files, tick, Runtime(threads=threads, cache=cache))
    place = {name: i for i, name in enumerate(outputs.names)}
    kept = [(place[name], label) for name, label in rows if name in place]
    if len(kept) < FEWEST:
        why = f"; {some([f'{name}: {reason}' for name, reason in outputs.skipped], 3)}" if outputs.skipped else ""
        raise LongshiftError(f"Expected at least {FEWEST} labeled samples that can be read, got {len(kept)}{why}")
    chosen = np.array([i for i, _ in kept], dtype=np.int64)
    labels = np.array([loaded.classes.index(label) for _, label in kept], dtype=np.int64)
    assert outputs.features is not None
    new = Samples(outputs.features.numpy()[chosen].astype(np.float64), labels)
    memory = read_memory(loaded.folder)
    known = Samples(*memory) if memory else None
    comparison = compare_heads(old, new, known)
    head = refit_head(old, new, known)
    temperature = fit_temperature(comparison.logits, labels)
    with replacing_folder(target) as made:
        _write(loaded, head, temperature, made)
        if known:
            write_memory(made, known.features, known.labels)
    counts = np.bincount(labels, minlength=len(loaded.classes)).tolist()
    return Adapted(target, comparison, dict(zip(loaded.classes, counts, strict=True)), outputs.skipped)


def classifier_head(model: LoadedModel) -> Head:
    """The last layer of a model."""
    if model.info.predictor != "network":
        raise UsageError(
            f"Models of {model.info.method} cannot be adapted: their last layer is not linear. Fit again with another "
            "--method, for example ndcl_plus"
        )
    layer = _network(model).classifier
    weight, bias = (value.detach().cpu().double().numpy() for value in (layer.weight, layer.bias))
    return Head(weight, bias)


def read_labels(path: Path, classes: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs of a sample and its class, from a CSV file or a folder class/image."""
    if path.is_dir():
        rows = [(os.path.join(path, name), name.split("/", 1)[0]) for name in list_folder(path).images if "/" in name]
    elif path.suffix.lower() == ".csv" and path.exists():
        try:
            reader = csv.DictReader(io.StringIO(read_limited(path, MOST_TEXT).decode("utf-8-sig"), newline=""))
            if not {"path", "label"} <= set(reader.fieldnames or ()):
                found = ", ".join(reader.fieldnames or ()) or "none"
                raise LongshiftError(f"{path}: expected the columns path and label, got {found}")
            rows = [(from_csv_cell(row["path"] or ""), from_csv_cell((row["label"] or "").strip())) for row in reader]
        except UnicodeDecodeError as error:
            raise LongshiftError(f"{path} is not UTF-8 ({error}). Save it as UTF-8.") from error
        except (OSError, csv.Error) as error:
            raise LongshiftError(f"cannot read {path}: {error}") from error
        rows = [(name, label) for name, label in rows if name and label]
    else:
        raise UsageError(f"Expected a .csv file with the columns path and label, or a folder class/image, got {path}")
    unknown = sorted({label for _, label in rows} - set(classes))
    if unknown:
        raise LongshiftError(f"{path}: {unknown_name('class', unknown[0], classes)} ({len(unknown)} unknown in all)")
    twice = [name for name, n in Counter(name for name, _ in rows).items() if n > 1]
    if twice:
        raise LongshiftError(f"{path}: expected each sample once, got {some(twice, 3)} more than once")
    return rows


def _network(model: LoadedModel) -> Network:
    return next(part for part in model.predictor.modules() if isinstance(part, Network))


def _write(model: LoadedModel, head: Head, temperature: float, target: Path) -> None:
    """Copy the model with another last layer; its record at unseen sites is that of the old one and is left out."""
    from safetensors.torch import load_file

    source, made = RunFolder(model.folder), RunFolder(target)
    weights = load_file(source.model)
    for name, value in (("weight", head.weight), ("bias", head.bias)):
        key = f"network.classifier.{name}"
        weights[key] = torch.from_numpy(np.ascontiguousarray(value)).to(weights[key].dtype)
    for file in (source.config, source.network):
        if file.exists():
            shutil.copy2(file, target / file.name)
    found = checkpoint.save_weights(made.model, weights)
    described = read_json(source.description)
    kept = {key: value for key, value in described.items() if key != "unseen_sites"}
    write_json(made.description, {**kept, "weights": found, "temperature": temperature, "adapted": True})

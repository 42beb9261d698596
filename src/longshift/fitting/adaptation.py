"""`longshift adapt`: refit the last layer of a model with labeled samples of a new site; the old model is kept."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from longshift.data import find_values, is_dataset, list_folder, load_dataset, sample_names, split_choices
from longshift.errors import LongshiftError, UsageError, unknown_name
from longshift.fitting.data_summary import lines
from longshift.fitting.head_refit import HeadComparison, Samples, compare_heads, refit_head
from longshift.inference import LoadedModel, collect_outputs, load_model, read_memory, write_memory
from longshift.io import (
    folder_exists,
    read_json,
    replacing_folder,
    require_writable,
    write_json,
)
from longshift.methods import LinearHead
from longshift.metrics import fit_temperature
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

    It is fitted by logistic regression to the labels and, with the same weight, to known samples of the training
    sites, which the model's folder keeps. Before, the features of the site are moved to where its classes are at the
    training sites.

    Args:
        model: The folder of a fit or run.
        labeled: A CSV file with the columns path and label, a folder class/image, or what `load_dataset` takes. Rows
            without a label are left out. Paths may be relative to the CSV file; those of samples in archives, tables
            and vectors are DATA#PATH, as `predict` and `suggest` write them.
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
    memory = read_memory(loaded.folder)
    if loaded.info.predictor != "network" or memory is None:
        why = "no known samples are kept with it" if memory is None else "its last layer is not linear"
        raise UsageError(f"{model} cannot be adapted: {why}. Fit a model with `longshift fit`.")
    rows = read_labels(labeled, loaded.classes)
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
    known = Samples(*memory)
    comparison = compare_heads(outputs.logits.double().numpy()[chosen], new, known)
    head = refit_head(new, known, len(loaded.classes))
    temperature = fit_temperature(comparison.logits, labels)
    with replacing_folder(target) as made:
        _write(loaded, head, temperature, made)
        write_memory(made, known.features, known.labels, {"labeled": new.features.astype(np.float32)})
    counts = np.bincount(labels, minlength=len(loaded.classes)).tolist()
    return Adapted(target, comparison, dict(zip(loaded.classes, counts, strict=True)), outputs.skipped)


def read_labels(data: str | os.PathLike[str], classes: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs of a sample and its class, from a CSV file, a folder class/image or a dataset."""
    text, choices = split_choices(data)
    path = Path(text).expanduser()
    if path.is_dir() and not is_dataset(str(path)):
        rows = [(os.path.join(path, name), name.split("/", 1)[0]) for name in list_folder(path).images if "/" in name]
    elif path.suffix.lower() == ".csv" and path.exists():
        found = find_values(path, choices, ("path", "label"))
        cells = zip(found["path"], found["label"], strict=True)
        rows = [(from_csv_cell(name), from_csv_cell(label.strip())) for name, label in cells]
        if rows and not any(label for _, label in rows):
            raise LongshiftError(f"{path}: the column label is empty in all {len(rows)} rows. Fill it in.")
        rows = [(_beside(name, path.parent), label) for name, label in rows if name and label]
    elif is_dataset(os.fspath(data)):
        manifest = load_dataset(os.fspath(data), needs=() if path.suffix.lower() != ".zip" else ("label",))
        named = zip(sample_names(os.fspath(data), manifest), manifest.labels.tolist(), strict=True)
        rows = [(name, manifest.classes[k]) for name, k in named if manifest.classes[k]]
    else:
        raise UsageError(
            f"Expected a .csv file with the columns path and label, a folder class/image or a dataset, got {path}"
        )
    unknown = sorted({label for _, label in rows} - set(classes))
    if unknown:
        raise LongshiftError(f"{path}: {unknown_name('class', unknown[0], classes)} ({len(unknown)} unknown in all)")
    twice = [name for name, n in Counter(name for name, _ in rows).items() if n > 1]
    if twice:
        raise LongshiftError(f"{path}: expected each sample once, got {some(twice, 3)} more than once")
    return rows


def _beside(name: str, folder: Path) -> str:
    """The path of a file (or of a vector in it, FILE#ID), which may be relative to the folder of the table."""

    def exists(path: str) -> bool:
        return os.path.exists(path) or os.path.exists(path.rpartition("#")[0])

    there = os.path.join(folder, name)
    return there if exists(there) and not exists(name) else name


def _write(model: LoadedModel, head: LinearHead, temperature: float, target: Path) -> None:
    """Copy the model with another last layer; its record at unseen sites is that of the old one and is left out."""
    from safetensors.torch import load_file

    source, made = RunFolder(model.folder), RunFolder(target)
    weights = load_file(source.model)
    for name, value in (("weight", head.weight), ("bias", head.bias)):
        key = f"network.classifier.{name}"
        weights[key] = value.to(weights[key].dtype).contiguous()
    for file in (source.config, source.network):
        if file.exists():
            shutil.copy2(file, target / file.name)
    found = checkpoint.save_weights(made.model, weights)
    described = read_json(source.description)
    kept = {key: value for key, value in described.items() if key != "unseen_sites"}
    write_json(made.description, {**kept, "weights": found, "temperature": temperature, "adapted": True})

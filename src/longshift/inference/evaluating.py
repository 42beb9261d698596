"""Measure a model: a finished run again, from its files alone, or any model on labeled data of one or more sites."""

from __future__ import annotations

import itertools
import os
import shlex
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from longshift.array_types import IntArray
from longshift.data import DataChanged, Manifest, Row, list_folder, load_dataset, open_store
from longshift.errors import LongshiftError, UsageError, unknown_name
from longshift.inference.expected_accuracy import SiteEstimate, adapted_with
from longshift.inference.loading import (
    FINAL_FOLDER,
    PLAN_FILE,
    LoadedModel,
    Weights,
    frozen_network,
    load_model,
    model_folder,
    weights_file,
)
from longshift.inference.outputs import Outputs, row_outputs
from longshift.inference.prediction import adapt_outputs, estimate_from, learn_offset
from longshift.inference.site_adaptation import Adapt, SiteOffset
from longshift.metrics import Evaluation, evaluate_predictions, expected_calibration_error
from longshift.progress import Bar, no_bar
from longshift.settings import NO_TARGET, load_split
from longshift.text import counted, some
from longshift.training import (
    SETS,
    EvaluationSource,
    Evaluator,
    FeatureRequest,
    RunFolder,
    Runtime,
    Task,
    build_method,
    calibration_scores,
    checkpoint,
    evaluate_set,
    host_tensor,
    open_features,
    open_inputs,
    read_config,
    read_model_file,
    read_result,
    require_readable,
    require_version,
    resolve_device,
)

TOLERANCE = 0.005  # between devices and precisions a few samples of a thousand may change sides


def evaluate(
    path: Path | str,
    sets: Sequence[str] = SETS,
    weights: Weights = "selected",
    runtime: Runtime | None = None,
    bar: Bar = no_bar,
) -> dict[str, Any]:
    """Measure a finished run again, from its files, on its own validation, test and target sets.

    Args:
        path: The folder of a run or a fit.
        sets: The sets to measure.
        weights: "selected" or "averaged".
        runtime: Device and other options that do not change what is computed.
        bar: Factory of progress bars.

    Returns:
        Per set, what `Evaluation.to_dict` gives, of the plain outputs. "recorded" has the accuracies in result.json,
        "agrees" whether they are the same (to half a point, which another device may differ by), and "calibrated" per
        set the ece and nll of the probabilities that `predict` gives, which are divided by the model's "temperature".

    Raises:
        LongshiftError: If the folder has no finished run, or its data cannot be read.

    Example:
        >>> longshift.evaluate("runs/ndcl-ink-0", ["target"])["agrees"]  # doctest: +SKIP
        True
    """
    for name in sets:
        if name not in SETS:
            raise UsageError(unknown_name("set", name, SETS))
    folder, runtime = model_folder(path), runtime or Runtime()
    config = read_config(folder)
    file = weights_file(folder, weights)
    checkpoint.require_weights(file)
    recorded_result = read_result(folder) if folder.finished() else {}
    manifest = load_dataset(config.data)
    split = load_split(folder.split, manifest, runtime.cache)
    described = read_model_file(folder.description)
    network = frozen_network(described, folder)
    plain = config.model_copy(update={"views": 1})  # copies are for training only
    task = Task(manifest, split, open_inputs(plain, manifest, network, runtime, bar), network)
    recorded_version = config.data_version or (recorded_result.get("data_version") or "")
    try:
        what = f"the data of {folder.path} have changed since it was trained"
        require_version(recorded_version, task.store.version, what, runtime.cache)
    except DataChanged as error:
        if not config.benchmark:
            raise
        # A benchmark is known by its counts: copies of it, such as other archives, may differ in some files.
        warnings.warn(f"{error} The run is measured on this copy of {config.benchmark}.", stacklevel=2)
    device = resolve_device(runtime.device)
    method, inputs = build_method(config, task, runtime, device, described)
    named = described.weights if weights == "selected" else described.averaged_weights
    checkpoint.load_weights(file, method, expected=named)
    source = EvaluationSource(host_tensor(task.store.inputs), device)
    evaluator = Evaluator(task, method, source, inputs, folder.path.name, runtime.eval_batch)
    recorded = recorded_result.get(weights) or {}
    temperature = described.temperature if weights == "selected" else described.averaged_temperature
    found: dict[str, Any] = {
        "folder": str(folder.path), "weights": weights, "recorded": {}, "agrees": True,
        "temperature": temperature, "calibrated": {},
    }  # fmt: skip
    for name in sets:
        indices = split.part(name)
        if not len(indices):
            if len(sets) == 1:
                why = ": the model was trained on all sites" if split.target == NO_TARGET else ""
                raise LongshiftError(f"the {name} set of {folder.path} is empty{why}")
            continue
        logits = evaluator.complete({}, [name])[name].logits
        found[name] = evaluate_set(task, name, logits, folder.path.name).to_dict()
        found["calibrated"][name] = calibration_scores(logits, task.labels(indices), temperature)
        if name in recorded:
            found["recorded"][name] = recorded[name]["accuracy"]
            found["agrees"] &= abs(found[name]["accuracy"] - recorded[name]["accuracy"]) <= TOLERANCE
    return found


Seen = Literal["", "site", "data"]


@dataclass(frozen=True)
class SiteResult:
    """What was found at a site, and what was expected there without labels (None: too few samples, or no fit)."""

    site: str
    found: Evaluation
    ece: float  # of the calibrated probabilities
    expected: SiteEstimate | None
    seen: Seen = ""  # "site": the model was trained on a site of this name; "data": on these very data
    unknown: Mapping[str, int] = field(default_factory=dict)  # samples of classes that the model lacks, left out
    adapted: SiteOffset | None = None  # to this site, without labels
    plain_accuracy: float | None = None  # without adapting, if it was adapted
    used: int = 0  # samples that `longshift adapt` was given, left out

    @property
    def inside(self) -> bool | None:
        """Whether the interval held the accuracy, both rounded as they are printed; None without an interval."""
        if self.expected is None:
            return None
        reach = self.expected.accuracy
        return round(100 * reach.low) <= round(100 * self.found.accuracy, 1) <= round(100 * reach.high)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        expected = self.expected.to_json() if self.expected else None
        return {
            "site": self.site, **self.found.to_dict(), "balanced_accuracy": self.found.balanced_accuracy,
            "calibrated_ece": self.ece, "expected": expected, "inside_interval": self.inside,
            "seen_in_training": self.seen, "unknown_classes": dict(self.unknown), "used_to_adapt": self.used,
            **({"adapted_with": self.adapted.n, "strength": self.adapted.strength} if self.adapted else {}),
            **({"accuracy_without_adapting": self.plain_accuracy} if self.adapted else {}),
        }  # fmt: skip


def evaluate_site(
    model: LoadedModel | Path | str,
    data: str | Path,
    weights: Weights = "selected",
    device: str = "auto",
    cache: Path | None = None,
    bar: Bar = no_bar,
    adapt: Adapt = "auto",
    mix: Mapping[str, float] | None = None,
    threads: int = 0,
) -> list[SiteResult]:
    """Measure a model on labeled data: accuracy, classes, confusion, calibration, and promised against found.

    Samples of classes that the model does not know are left out and counted (`SiteResult.unknown`), and so are those
    that `longshift adapt` was given (`SiteResult.used`).

    Args:
        model: A loaded model, or the folder of a run or fit.
        data: A folder class/image of one site, or what `load_dataset` takes (site/class/image, a table, vectors).
        weights: "selected" or "averaged", for a folder.
        device: Device for a folder.
        cache: Folder of decoded images and features.
        bar: From a label and a number of samples to a context manager that shows progress while images are decoded.
        adapt: Whether to adapt the model to each site without labels, as in `predict`.
        mix: Known share of each class at a site, as in `predict`.
        threads: Threads on the CPU; 0: one per processor.

    Returns:
        One result per site.

    Raises:
        LongshiftError: If the data have no labels, a site has no class that the model knows, or they cannot be read.

    Example:
        >>> for result in evaluate_site("fits/hospitals", "labeled_site/"):  # doctest: +SKIP
        ...     print(result.site, result.found.accuracy)
    """
    loaded = model if isinstance(model, LoadedModel) else load_model(model, weights, device)
    manifest = labeled_data(loaded, data)
    place = np.array([_index(loaded.classes, name) for name in manifest.classes], dtype=np.int64)
    labels = place[manifest.labels]
    for d, site in enumerate(manifest.domain_names):
        if (labels[manifest.domains == d] < 0).all():
            raise LongshiftError(
                f"Expected the classes of the model ({some(loaded.classes)}), got only {some(manifest.classes)} at "
                f"{site}. Rename or remove them."
            )
    if manifest.vectors != loaded.info.vectors:
        takes, has = ("vectors", "images") if loaded.info.vectors else ("images", "vectors")
        raise LongshiftError(f"The model takes {takes}; {manifest.name} has {has}")
    runtime = Runtime(device=str(loaded.device), threads=threads, cache=cache)
    with bar("reading", len(manifest)) as tick:
        if loaded.network is None:
            store = open_store(manifest, loaded.size, cache, tick)
        else:
            store = open_features(manifest, loaded.network, FeatureRequest(loaded.size), runtime=runtime, tick=tick)
            require_readable(store)
            loaded = loaded.head
    if manifest.vectors and store.inputs.shape[1] != loaded.info.input_dim:
        raise LongshiftError(f"Expected vectors of length {loaded.info.input_dim}, got {store.inputs.shape[1]}")
    seen: Seen = "data" if store.version and store.version == _training_version(loaded) else "site"
    results = []
    for d, site in enumerate(manifest.domain_names):
        rows = np.flatnonzero((manifest.domains == d) & (labels >= 0))
        names = tuple(manifest.paths[i] for i in rows.tolist())
        logits, features = row_outputs(loaded, store.inputs, rows, True, runtime)
        assert features is not None
        new = ~adapted_with(loaded.folder, features)
        if not new.any():
            raise LongshiftError(f"Expected samples that the model was not adapted with, got none at {site}.")
        outputs = Outputs(tuple(itertools.compress(names, new)), logits[new], features[new], ())
        left_out = manifest.labels[(manifest.domains == d) & (labels < 0)]
        unknown = Counter(manifest.classes[k] for k in left_out.tolist())
        known_site: Seen = seen if site in loaded.info.sources else ""
        found = _result(loaded, site, outputs, labels[rows[new]], known_site, adapt, mix)
        results.append(replace(found, unknown=unknown, used=int((~new).sum())))
    return results


def _index(classes: Sequence[str], name: str) -> int:
    return classes.index(name) if name in classes else -1


def _result(
    model: LoadedModel, site: str, outputs: Outputs, labels: IntArray, seen: Seen, adapt: Adapt,
    mix: Mapping[str, float] | None,
) -> SiteResult:  # fmt: skip
    offset = learn_offset(model, outputs, adapt, mix)
    plain = float((outputs.logits.argmax(1).numpy() == labels).mean()) if offset else None
    outputs = adapt_outputs(model, outputs, offset)
    domains = np.zeros(len(labels), dtype=np.int64)
    found = evaluate_predictions(outputs.logits, labels, domains, model.classes, (site,), source=site)
    ece = expected_calibration_error(outputs.logits.double() / model.temperature, labels)
    return SiteResult(site, found, ece, estimate_from(model, outputs), seen, adapted=offset, plain_accuracy=plain)


def _training_version(model: LoadedModel) -> str:
    """The version of the data that a model was trained on; "" where its folder does not tell."""
    folder = RunFolder(model.folder)
    try:
        recorded = read_config(folder).data_version
        return recorded or str((read_result(folder) if folder.finished() else {}).get("data_version") or "")
    except LongshiftError:  # the model can be used without these files
        return ""


def _one_site_without(manifest: Manifest) -> Manifest:
    """The dataset; samples without a site are of one that is called like it."""
    return replace(manifest, domain_names=tuple(name or manifest.name for name in manifest.domain_names))


def labeled_data(model: LoadedModel, data: str | Path) -> Manifest:
    """A dataset; a folder whose images all lie in class/ is one site, and one with images in no class is refused."""
    path = Path(data)
    images = list_folder(path).images if path.is_dir() else []
    if images and all(name.count("/") == 1 for name in images):
        site = path.resolve().name
        return Manifest.from_rows(site, path, [Row(site, name.split("/", 1)[0], name) for name in images])
    loose = sorted(name for name in images if "/" not in name)
    if not loose or any(name.count("/") > 1 for name in images):  # the latter is a dataset with misplaced images
        return _one_site_without(load_dataset(data, needs=("label",)))
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

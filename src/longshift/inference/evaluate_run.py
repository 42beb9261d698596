"""Measure a finished run again, from its files alone."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from longshift.data import DataChanged, load_dataset
from longshift.errors import LongshiftError, UsageError, unknown_name
from longshift.inference.loading import Weights, frozen_network, model_folder, weights_file
from longshift.progress import Bar, no_bar
from longshift.settings import NO_TARGET, load_split
from longshift.training import (
    SETS,
    EvaluationSource,
    Evaluator,
    Runtime,
    Task,
    build_method,
    calibration_scores,
    checkpoint,
    evaluate_set,
    host_tensor,
    open_inputs,
    read_config,
    read_model_file,
    read_result,
    require_version,
    resolve_device,
)

ALL_SITES = "this model was trained on all sites and none is left; the fit's report.html has the estimate for a new one"
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
    evaluator = Evaluator(task, method, source, inputs, folder.path.name)
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
                why = f": {ALL_SITES}" if split.target == NO_TARGET else ""
                raise LongshiftError(f"the {name} set of {folder.path} is empty{why}")
            continue
        logits = evaluator.predict(name)
        found[name] = evaluate_set(task, name, logits, folder.path.name).to_dict()
        found["calibrated"][name] = calibration_scores(logits, task.labels(indices), temperature)
        if name in recorded:
            found["recorded"][name] = recorded[name]["accuracy"]
            found["agrees"] &= abs(found[name]["accuracy"] - recorded[name]["accuracy"]) <= TOLERANCE
    return found

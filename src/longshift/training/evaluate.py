"""Predictions and metrics of a method on whole sets, in large batches, without augmentation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from longshift.analysis import by_domain, domain_outputs, posterior_discrepancy
from longshift.array_types import IntArray
from longshift.methods import Method
from longshift.metrics import (
    Evaluation,
    evaluate_predictions,
    expected_calibration_error,
    fit_temperature,
    negative_log_likelihood,
)
from longshift.nn import without_kernel_tuning
from longshift.settings import Split
from longshift.training.batch_source import EvaluationSource
from longshift.training.inputs import Inputs
from longshift.training.run_config import Runtime
from longshift.training.task import Task

SETS: tuple[str, ...] = ("validation", "test", "target")


def evaluate_set(task: Task, name: str, logits: Tensor, source: str = "") -> Evaluation:
    """All metrics of the logits of one of a task's sets; `source` names the run in error messages.

    Where validation is a share of each domain and class, its accuracy is the mean over these cells.
    """
    indices, split = task.split.part(name), task.split
    sources = name != "target"
    return evaluate_predictions(
        logits,
        task.labels(indices),
        task.source_domains(indices) if sources else np.zeros(len(indices), dtype=np.int64),
        classes=split.classes,
        domain_names=split.sources if sources else (split.target,),
        shots=split.shots,
        source=f"{source} ({name})",
        by_cell=name == "validation" and split.share is not None,
    )


def selection_accuracy(split: Split, validation: Evaluation) -> float:
    """What selects weights: the mean over classes or, where validation is a share of each cell, over cells."""
    return validation.balanced_accuracy if split.share is None else validation.accuracy


def posterior_gaps(task: Task, logits: Mapping[str, Tensor]) -> dict[str, float | None]:
    """Jensen-Shannon divergence of class-mean posteriors, averaged over classes: sources to target, and among sources.

    Sources are measured on their held-out samples (validation and test). None where no class can be compared.
    """
    held = [name for name in ("validation", "test") if name in logits]
    if "target" not in logits or not held:
        return {}
    rows, split = np.concatenate([task.split.part(name) for name in held]), task.split
    outputs = torch.cat([logits[name] for name in held])
    sources = by_domain(outputs, task.labels(rows), task.source_domains(rows), split.sources)
    target = domain_outputs(split.target, logits["target"], task.labels(split.part("target")))
    found = posterior_discrepancy(sources, target)
    gaps = {"target": found.average, "sources": found.between_sources}
    return {name: value if np.isfinite(value) else None for name, value in gaps.items()}


def calibration(task: Task, logits: Mapping[str, Tensor]) -> dict[str, Any]:
    """The temperature that calibrates on validation, and ece and nll of the probabilities that `predict` then gives.

    The metrics of a set are of the plain outputs.
    """
    labels = {name: task.labels(task.split.part(name)) for name in logits}
    if "validation" not in logits or not all(bool(torch.isfinite(values).all()) for values in logits.values()):
        return {}
    temperature = fit_temperature(logits["validation"], labels["validation"])
    found: dict[str, Any] = {"temperature": temperature}
    for name, values in logits.items():
        found[name] = calibration_scores(values, labels[name], temperature)
    return found


def calibration_scores(logits: Tensor, labels: IntArray, temperature: float) -> dict[str, float]:
    """Compute ece and nll of the probabilities that `predict` gives: softmax(logits / temperature)."""
    scaled = logits.double() / temperature
    return {"ece": expected_calibration_error(scaled, labels), "nll": negative_log_likelihood(scaled, labels)}


def brief(found: Mapping[str, Evaluation]) -> dict[str, Any]:
    """Evaluations by set as a row of metrics.jsonl has them: without the confusion matrices."""
    rows = {name: evaluation.to_dict() for name, evaluation in found.items()}
    for row in rows.values():
        del row["confusion"]
    return rows


class SetOutputs(NamedTuple):
    """What a method computes on one set, in float32 on the CPU."""

    logits: Tensor  # (N, classes)
    features: Tensor | None  # (N, feature_dim), where they are kept


Outputs = dict[str, SetOutputs]  # by the name of the set


class Evaluator:
    """Predicts and measures the sets of a task with the current weights of a method.

    Args:
        task: The data.
        method: The method.
        source: Where the samples come from.
        inputs: How samples become inputs.
        name: The name of the run, for error messages.
        batch: Samples that are predicted at once.
        keep_features: Whether features are kept next to logits, for predictions.npz.
    """

    def __init__(
        self, task: Task, method: Method, source: EvaluationSource, inputs: Inputs, name: str = "",
        batch: int = Runtime.eval_batch, keep_features: bool = False,
    ) -> None:  # fmt: skip
        self.task, self.method, self.source, self.inputs, self.name = task, method, source, inputs, name
        self.batch, self.keep_features = batch, keep_features
        self.sets: dict[str, IntArray] = {name: task.split.part(name) for name in SETS}

    def complete(self, outputs: Outputs, names: Sequence[str]) -> Outputs:
        """Predict those of the sets that have samples and are not in `outputs`, which is of the present weights."""
        for name in names:
            if name not in outputs and len(self.sets[name]):
                logits, *features = (values.cpu() for values in self._over_chunks(self._both, self.sets[name]))
                outputs[name] = SetOutputs(logits, features[0] if features else None)
        return outputs

    def features(self, indices: IntArray) -> Tensor:
        """Features (N, feature_dim) of samples, on the device of the method."""
        return self._over_chunks(lambda x: (self.method.network.features(x),), indices)[0]

    def measure(self, outputs: Outputs) -> dict[str, Evaluation]:
        """Metrics of each set; none at all if a prediction is not finite."""
        if not all(torch.isfinite(found.logits).all() for found in outputs.values()):
            return {}
        return {name: evaluate_set(self.task, name, found.logits, self.name) for name, found in outputs.items()}

    def measure_all(self, outputs: Outputs) -> dict[str, Any]:
        """Metrics of all sets and the posterior gaps, as they are in result.json."""
        logits = {name: outputs[name].logits for name in SETS if name in outputs}
        found = {name: evaluate_set(self.task, name, values, self.name) for name, values in logits.items()}
        return {
            **{name: evaluation.to_dict() for name, evaluation in found.items()},
            "posterior": posterior_gaps(self.task, logits),
            "calibrated": calibration(self.task, logits),
        }

    def prediction_arrays(self, outputs: Outputs) -> dict[str, npt.NDArray[Any]]:
        """The arrays of predictions.npz, e.g. "target_logits"; domains are manifest indices. Empty sets have none."""
        arrays: dict[str, npt.NDArray[Any]] = {}
        for name, found in outputs.items():
            indices = self.sets[name]
            assert found.features is not None  # as `keep_features` asks
            arrays[f"{name}_logits"] = found.logits.numpy()
            arrays[f"{name}_features"] = found.features.numpy()
            arrays[f"{name}_labels"] = self.task.labels(indices)
            arrays[f"{name}_domains"] = self.task.manifest.domains[indices]
            arrays[f"{name}_indices"] = indices
        return arrays

    def _both(self, x: Tensor) -> tuple[Tensor, ...]:
        """Logits and, where they are kept, features of a batch, in one pass if the network itself predicts."""
        network = self.method.network
        if not self.keep_features:
            return (self.method.predict(x),)
        features = network.features(x)
        own = self.method.predictor() is network
        return (network.classifier(features) if own else self.method.predict(x)), features

    @torch.no_grad()
    def _over_chunks(self, function: Callable[[Tensor], tuple[Tensor, ...]], indices: IntArray) -> tuple[Tensor, ...]:
        training = self.method.training
        self.method.eval()
        results = []
        chunk = min(self.batch, len(indices))
        try:
            with without_kernel_tuning():  # trying out kernels would take longer than all evaluations of a run together
                for start in range(0, len(indices), max(chunk, 1)):
                    part = indices[start : start + chunk]
                    # The last chunk is filled up, so that a GPU sees only one shape.
                    padded = np.concatenate([part, np.repeat(part[-1:], chunk - len(part))])
                    found = function(self.inputs.evaluation(self.source.rows(padded)))
                    results.append([values[: len(part)].float() for values in found])
        finally:
            self.method.train(training)
        return tuple(torch.cat(parts) for parts in zip(*results, strict=True))

"""Predictions of a trained method on whole sets, in large batches, never augmented."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
import torch
from torch import Tensor

from longshift.array_types import IntArray
from longshift.methods import Method
from longshift.metrics import (
    Evaluation,
    FloatArray,
    class_posteriors,
    evaluate_predictions,
    js_divergence,
    nan_mean,
    probabilities,
)
from longshift.nn import untuned
from longshift.training.batch_source import Rows
from longshift.training.batches import Inputs
from longshift.training.task import Task

CHUNK = 512
SETS: tuple[str, ...] = ("validation", "test", "target")


def judge(task: Task, name: str, logits: Tensor, source: str = "") -> Evaluation:
    """All metrics of the logits of one of a task's sets; `source` names the run in complaints."""
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
    )


def posterior_gaps(task: Task, logits: Mapping[str, Tensor]) -> dict[str, float | None]:
    """Jensen-Shannon divergence of class-mean posteriors, averaged over classes: sources to target, and among sources.

    Sources are measured on their held-out samples (validation and test). None where no class can be compared.
    """
    held = [name for name in ("validation", "test") if name in logits]
    if "target" not in logits or not held:
        return {}
    indices = np.concatenate([task.split.part(name) for name in held])
    values = probabilities(torch.cat([logits[name] for name in held]))
    labels, domains = task.labels(indices), task.source_domains(indices)
    rows = [class_posteriors(values[domains == d], labels[domains == d]) for d in range(len(task.split.sources))]
    goal = class_posteriors(probabilities(logits["target"]), task.labels(task.split.part("target")))
    apart = [js_divergence(row, goal) for row in rows]
    among = [js_divergence(a, b) for a, b in combinations(rows, 2)]
    return {"target": _mean(apart), "sources": _mean(among)}


def _mean(gaps: Sequence[FloatArray]) -> float | None:
    """Over domains, then over classes; a class that a domain lacks is left out."""
    value = float(nan_mean(nan_mean(np.stack(gaps)))) if gaps else float("nan")
    return value if np.isfinite(value) else None


@torch.no_grad()
def predict_rows(method: Method, source: Rows, inputs: Inputs, indices: IntArray, chunk: int = CHUNK) -> Tensor:
    """Logits (N, classes) in float32 on the CPU, in the order of `indices`."""
    return _over_chunks(method, method.predict, source, inputs, indices, chunk)


@torch.no_grad()
def feature_rows(method: Method, source: Rows, inputs: Inputs, indices: IntArray, chunk: int = CHUNK) -> Tensor:
    """Features (N, feature_dim) on the device of the method."""
    return _over_chunks(method, method.network.features, source, inputs, indices, chunk, keep=True)


def _over_chunks(
    method: Method,
    function: object,
    source: Rows,
    inputs: Inputs,
    indices: IntArray,
    chunk: int,
    keep: bool = False,
) -> Tensor:
    assert callable(function)
    training = method.training
    method.eval()
    results = []
    chunk = min(chunk, len(indices))
    try:
        with untuned():  # trying out kernels would take longer than all evaluations of a run together
            for start in range(0, len(indices), max(chunk, 1)):
                part = indices[start : start + chunk]
                # The last chunk is filled up, so that a GPU sees one shape only.
                padded = np.concatenate([part, np.repeat(part[-1:], chunk - len(part))])
                out: Tensor = function(inputs.evaluation(source.rows(padded)))[: len(part)].float()
                results.append(out)
    finally:
        method.train(training)
    joined = torch.cat(results)
    return joined if keep else joined.cpu()

"""Predictions of a trained method on whole sets, in large batches, never augmented."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from longshift.data.batches import Inputs
from longshift.data.manifest import IntArray
from longshift.engine.source import Rows
from longshift.engine.task import Task
from longshift.methods.base import Method
from longshift.metrics.evaluation import Evaluation, evaluate_predictions
from longshift.nn.kernels import untuned

CHUNK = 512
SETS = ("validation", "test", "target")


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

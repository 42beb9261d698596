"""Checked inputs (NumPy arrays or torch tensors), and the numbers per sample that all metrics use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from longshift.array_types import FloatArray, IntArray
from longshift.errors import LongshiftError
from longshift.text import agree, counted

Array: TypeAlias = npt.NDArray[Any] | Tensor


def floats(values: Array) -> FloatArray:
    """Convert an array or tensor of any precision and device to float64 NumPy."""
    if isinstance(values, Tensor):
        return values.detach().to("cpu", torch.float64).numpy()
    return np.asarray(values, dtype=np.float64)


def integers(values: Array) -> IntArray:
    """Convert an integer array or tensor to int64 NumPy."""
    if isinstance(values, Tensor):
        return values.detach().to("cpu", torch.int64).numpy()
    return np.asarray(values, dtype=np.int64)


def finite_rows(values: Array, what: str, source: str | None = None) -> FloatArray:
    """Return a non-empty (N, K) matrix of finite numbers as float64; raise an error for anything else."""
    owner = f"{source}: " if source else ""
    if len(values.shape) != 2 or values.shape[0] < 1 or values.shape[1] < 1:
        raise LongshiftError(f"{owner}expected {what} of shape (N, K) with N, K >= 1, got {tuple(values.shape)}")
    rows = floats(values)
    refuse_not_finite(np.asarray(np.isfinite(rows).all(axis=1)), what, source)
    return rows


def refuse_not_finite(good: npt.NDArray[np.bool_], what: str, source: str | None = None) -> None:
    """Raise an error unless every row is `good`; name the number of bad rows and the first one."""
    if good.all():
        return
    bad = np.flatnonzero(~good)
    raise LongshiftError(
        f"{f'{source}: ' if source else ''}{len(bad)} of {counted(len(good), 'row')} of {what} "
        f"{agree(len(bad), 'is', 'are')} not finite (first: row {bad[0]}); training has probably diverged, so no "
        "number is computed from them"
    )


def indices(values: Array, n: int, below: int, what: str, source: str | None = None) -> IntArray:
    """Return `n` indices in [0, below) as int64."""
    owner = f"{source}: " if source else ""
    if tuple(values.shape) != (n,):
        raise LongshiftError(f"{owner}expected {n} {what} (one per row of logits), got shape {tuple(values.shape)}")
    result = integers(values)
    if result.size and (result.min() < 0 or result.max() >= below):
        raise LongshiftError(f"{owner}expected {what} in 0..{below - 1}, got {result.min()}..{result.max()}")
    return result


# Rows converted to float64 at a time: the float64 copies of 170,000 x 345 logits would need 1.4 GB.
_CHUNK = 16_384


@dataclass(frozen=True, eq=False)
class Scores:
    """Per sample: label, predicted class, confidence max p, margin p_y - max_{k != y} p_k, and -log p_y."""

    labels: IntArray
    predicted: IntArray
    confidence: FloatArray
    margin: FloatArray
    nll: FloatArray
    classes: int

    def __len__(self) -> int:
        return len(self.labels)


def log_softmax(rows: FloatArray) -> FloatArray:
    """Compute log p of each row of logits without overflow."""
    shifted = rows - rows.max(axis=1, keepdims=True)
    result: FloatArray = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return result


def probabilities(logits: Array, source: str | None = None, temperature: float = 1.0) -> FloatArray:
    """Compute the softmax of (N, K) logits / temperature in float64."""
    result: FloatArray = np.exp(log_softmax(finite_rows(logits, "logits", source) / temperature))
    return result


def score_samples(logits: Array, labels: Array, source: str | None = None) -> Scores:
    """Compute the scores of all samples; error messages start with `source`, the name of the run."""
    if len(logits.shape) != 2 or logits.shape[0] < 1 or logits.shape[1] < 2:
        owner = f"{source}: " if source else ""
        raise LongshiftError(f"{owner}expected logits (N >= 1, K >= 2), got shape {tuple(logits.shape)}")
    n, classes = int(logits.shape[0]), int(logits.shape[1])
    truth = indices(labels, n, classes, "labels", source)
    predicted = np.empty(n, dtype=np.int64)
    finite = np.ones(n, dtype=np.bool_)
    confidence, margin, nll = np.empty(n), np.empty(n), np.empty(n)
    for start in range(0, n, _CHUNK):
        part = slice(start, min(start + _CHUNK, n))
        rows = floats(logits[part])
        finite[part] = np.isfinite(rows).all(axis=1)
        if not finite[part].all():
            continue  # continue, so that the error counts all rows
        log_p = log_softmax(rows)
        row, y = np.arange(len(rows)), truth[part]
        p = np.exp(log_p)
        predicted[part] = rows.argmax(axis=1)
        confidence[part] = p.max(axis=1)
        nll[part] = -log_p[row, y]
        p_true = p[row, y]
        p[row, y] = -1.0
        margin[part] = p_true - p.max(axis=1)
    refuse_not_finite(finite, "logits", source)
    return Scores(truth, predicted, confidence, margin, nll, classes)

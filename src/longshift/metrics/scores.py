"""The numbers per sample that all metrics use, computed from the logits once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from longshift.array_types import FloatArray, IntArray
from longshift.errors import LongshiftError
from longshift.metrics.arrays import Array, finite_rows, floats, indices, refuse_not_finite

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

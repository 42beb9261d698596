"""Conversion and checks of the inputs of metrics: NumPy arrays or torch tensors."""

from __future__ import annotations

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

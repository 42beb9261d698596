"""predictions.npz: logits, features, labels and domains of each set, for later analysis."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from longshift.array_types import IntArray
from longshift.files import replacing
from longshift.training.task import Task

Measure = Callable[[IntArray], Tensor]


def prediction_arrays(
    task: Task, sets: Mapping[str, IntArray], logits: Measure, features: Measure
) -> dict[str, npt.NDArray[Any]]:
    """The arrays by name, e.g. "target_logits"; domains are manifest indices. Empty sets have none."""
    arrays: dict[str, npt.NDArray[Any]] = {}
    for name, indices in sets.items():
        if not len(indices):
            continue
        arrays[f"{name}_logits"] = logits(indices).cpu().numpy()
        arrays[f"{name}_features"] = features(indices).cpu().numpy()
        arrays[f"{name}_labels"] = task.labels(indices)
        arrays[f"{name}_domains"] = task.manifest.domains[indices]
        arrays[f"{name}_indices"] = indices
    return arrays


def write_predictions(path: Path, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write the arrays by rename."""
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)

"""Made-up runs with known numbers, and their folders."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from longshift.sweep import as_frame

METHODS = ("erm", "bsoftmax", "boda", "ndcl")
TARGETS = ("chalk", "ink")
GROUPS = ("accuracy", "many", "medium", "few", "worst_domain", "macro_f1", "margin", "ece", "nll")


def row(
    method: str, trial: int, draw: int = 0, target: str = "ink", dataset: str = "digits", setting: str = "Duality",
    value: float = 0.5, validation: float | None = None, status: str = "done", **more: Any,
) -> dict[str, Any]:  # fmt: skip
    """A run whose target accuracy is `value`, many/medium/few 0.1, 0.2, 0.3 below, worst domain 0.05 above."""
    numbers: dict[str, Any] = {}
    if status == "done":
        target_values = (value, value - 0.1, value - 0.2, value - 0.3, value + 0.05, value, 0.2, 0.1, 1.0)
        for prefix in ("", "last_"):
            for name in ("validation", "test", "target"):
                for metric, number in zip(GROUPS, target_values, strict=True):
                    numbers[f"{prefix}{name}_{metric}"] = number
        for metric, number in zip(GROUPS, target_values, strict=True):
            numbers[f"oracle_target_{metric}"] = number + 0.01
        numbers["validation_accuracy"] = value if validation is None else validation
        numbers["last_validation_accuracy"] = numbers["validation_accuracy"]
        numbers |= {"seconds_per_step": 0.0125, "seconds_total": 3.0, "selected_step": 20, "oracle_step": 10}
    fingerprint = f"{abs(hash((method, trial, draw, target, dataset, setting))):016x}"
    return {
        "fingerprint": fingerprint, "dataset": dataset, "setting": setting, "target": target, "method": method,
        "backbone": "mlp", "trial": trial, "draw": draw, "split_seed": trial, "train_seed": trial, "hparam_seed": draw,
        "status": status, "steps": 20, "device": "cpu: test", "hparams": "{}", **numbers, **more,
    }  # fmt: skip


def rows(
    methods: Sequence[str] = METHODS, targets: Sequence[str] = TARGETS, datasets: Sequence[str] = ("digits",),
    settings: Sequence[str] = ("Duality",), trials: int = 3, draws: int = 2, seed: int = 0,
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """A full grid; later methods are better, the second draw is the better one by validation."""
    rng = np.random.default_rng(seed)
    for dataset in datasets:
        for setting in settings:
            for target in targets:
                for i, method in enumerate(methods):
                    for trial in range(trials):
                        for draw in range(draws):
                            value = 0.4 + 0.4 * i / len(methods) + 0.02 * float(rng.standard_normal())
                            validation = 0.5 + 0.1 * draw
                            yield row(method, trial, draw, target, dataset, setting, value, validation)


def frame(**options: Any) -> pd.DataFrame:
    """The grid as `collect` would give it."""
    return as_frame(rows(**options))

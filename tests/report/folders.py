"""Folders of made-up runs, as the engine would leave them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from longshift.io import write_json
from longshift.metrics import evaluate_predictions
from longshift.training import RunFolder

SOURCES = ("clipart", "photo")


def write_run(
    folder: Path, method: str, target: str = "sketch", trial: int = 0, classes: Sequence[str] = ("cat", "dog", "owl"),
    setting: str = "Duality", skill: float = 1.0, data: str = "zoo", predictions: bool = False, seed: int = 0,
) -> None:  # fmt: skip
    """A finished run whose logits favor the right class by `skill`; small classes are harder."""
    rng = np.random.default_rng([seed, trial, *map(ord, method + target + setting)])
    count = len(classes)
    shots = ["many" if k < count / 3 else "medium" if k < 2 * count / 3 else "few" for k in range(count)]
    counts = [[int(60 * 0.93**k) + 2, int(30 * 0.95**k) + 1] for k in range(count)]
    parts: dict[str, Any] = {}
    arrays: dict[str, Any] = {}
    for part in ("validation", "test", "target"):
        labels = np.tile(np.arange(count), 6)
        logits = rng.standard_normal((len(labels), count))
        logits[np.arange(len(labels)), labels] += skill * (1.6 - labels / count)
        target_only = part == "target"
        domains = np.zeros(len(labels), dtype=np.int64) if target_only else np.arange(len(labels)) % 2
        names = (target,) if target_only else SOURCES
        parts[part] = evaluate_predictions(logits, labels, domains, classes, names, shots).to_dict()
        arrays |= {f"{part}_logits": logits, f"{part}_labels": labels, f"{part}_indices": np.arange(len(labels))}
    folder.mkdir(parents=True)
    fingerprint = f"{method}-{target}-{setting}-{trial}-{data}".encode().hex().ljust(16, "0")
    run = {
        "data": data, "benchmark": None, "setting": setting, "target": target, "method": method, "backbone": "mlp",
        "ratio": None, "hparam_seed": 0, "split_seed": trial, "train_seed": trial, "steps": 40, "evaluate": "selected",
    }  # fmt: skip
    evaluated = {"step": 40, **parts}
    result = {
        "schema": 2, "status": "done", "fingerprint": fingerprint, "run": run, "hparams": {},
        "split": {
            "fingerprint": "x", "classes": list(classes), "sources": list(SOURCES), "shots": shots,
            "counts": [list(row) for row in zip(*counts, strict=True)],
        },
        "last": evaluated, "selected": evaluated, "averaged": None, "backbone": "mlp", "memory_gib": None,
        "seconds": {"total": 2.0, "training": 1.0, "per_step": 0.02 + 0.001 * len(method)},
        "environment": {"device": "cpu", "cpu": "test", "commit": "none"},
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps({"schema": 2, "fingerprint": fingerprint, "run": run}))
    rows = []
    for step in (10, 20, 30, 40):
        rows.append({"step": step, "validation": {"accuracy": parts["validation"]["accuracy"] * step / 40}})
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    if predictions:
        np.savez_compressed(folder / "predictions.npz", **arrays)
    write_json(RunFolder(folder).result, result)


def write_runs(
    root: Path, methods: Sequence[str], targets: Sequence[str] = ("sketch", "photo"), trials: int = 2, **options: Any
) -> Path:  # fmt: skip
    """A folder of runs; later methods have more skill."""
    settings = options.pop("settings", ("Duality",))
    for setting in settings:
        for target in targets:
            for i, method in enumerate(methods):
                for trial in range(trials):
                    skill = 1 + 1.5 * (i + 1) / len(methods)
                    name = f"{method}-{targets.index(target)}-{setting}-{trial}"
                    write_run(root / name, method, target, trial, setting=setting, skill=skill, **options)
    return root

"""What labels of an unseen PACS domain bring: suggested against random ones, and `adapt` with 50 labels.

    python -m benchmarks.label_curve PACS.npz OUT.csv

PACS.npz as for benchmarks.new_site. For each target and seed a model is trained on 1,500 samples (500 per other
domain), then adapted with labels of the target; half of the target's samples measure.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy.typing as npt
import torch

from benchmarks import site_data
from benchmarks.common import write_rows
from benchmarks.nested_sites import train_subset
from longshift.fitting.suggest import simulate_labels

SEEDS = range(200, 203)
SAMPLES = 500


def measure(pacs: Path, seed: int) -> list[dict[str, Any]]:
    """All targets with one seed."""
    data = site_data.pacs(pacs, seed, SAMPLES)
    rows: list[dict[str, Any]] = []
    for target in data.names:
        others = tuple(name for name in data.names if name != target)
        with tempfile.TemporaryDirectory() as folder:
            run = train_subset(data, others, seed, Path(folder), "ndcl_plus")
        arrays: dict[str, npt.NDArray[Any]] = {
            "target_logits": run.at[target].logits, "target_features": run.at[target].features,
            "target_labels": run.at[target].labels, "validation_logits": run.logits,
            "validation_features": run.features, "validation_labels": run.labels,
        }  # fmt: skip
        for row in simulate_labels(target, arrays):
            found = {"target": target, "seed": seed, "labels": row.labels}
            rows.append({**found, "random": row.random, "suggested": row.suggested})
    return rows


def main() -> None:
    """Write one row per target, seed and number of labels."""
    torch.set_num_threads(1)
    rows: list[dict[str, Any]] = []
    out = Path(sys.argv[2])
    out.parent.mkdir(parents=True, exist_ok=True)
    for seed in SEEDS:
        rows += measure(Path(sys.argv[1]), seed)
        write_rows(out, rows)
        print(seed, flush=True)


if __name__ == "__main__":
    main()

"""Ways to fine-tune a whole network: validation, which decides, and the unseen domain."""

from __future__ import annotations

import pandas as pd

from results import numbers as n

DATA = ("PACS", "HAM10000", "WBC")
MEASURES = ("validation", "target_over_classes")


def table() -> str:
    """Percent over classes, means over targets; the best models on validation first."""
    frame = pd.concat([pd.read_csv(n.RESULTS / "finetune-candidates" / f"{name.lower()}.csv") for name in DATA])
    means = 100 * frame.groupby(["start", "model", "data"])[list(MEASURES)].mean()
    rows: dict[tuple[str, str], list[float]] = {}
    for start, model in {(start, model): None for start, model, _ in means.index}:
        cells = [[float(means[measure][start, model, name]) for name in DATA] for measure in MEASURES]
        rows[start, model] = [value for part in cells for value in (*part, sum(part) / len(DATA))]
    best = sorted(rows, key=lambda name: -rows[name][len(DATA)])
    heads = [f"{measure}: {data}" for measure in ("validation", "unseen") for data in (*DATA, "mean")]
    return n.markdown(["", *heads], [[", ".join(name), *map(n.text, rows[name])] for name in best])

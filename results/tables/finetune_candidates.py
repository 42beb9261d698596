"""Ways to fine-tune a whole network: validation, which decides, and the unseen domain."""

from __future__ import annotations

import pandas as pd

from results import numbers as n

DATA = ("PACS", "HAM10000", "WBC")
MEASURES = ("validation", "target_over_classes")


def table() -> str:
    """Percent over classes, means over targets; the best models on validation first."""
    frame = pd.concat([pd.read_csv(n.RESULTS / "finetune-candidates" / f"{name.lower()}.csv") for name in DATA])
    means = 100 * frame.groupby(["start", "model", "data"])[list(MEASURES)].mean().unstack("data")
    ordered = means.loc[means["validation"].mean(axis=1).sort_values(ascending=False).index]
    rows = []
    for (start, model), row in ordered.iterrows():
        cells = [[row[measure][name] for name in DATA] for measure in MEASURES]
        rows.append([f"{start}, {model}", *(n.text(v) for part in cells for v in (*part, sum(part) / len(part)))])
    return n.markdown(["", *(f"{m}: {d}" for m in ("validation", "unseen") for d in (*DATA, "mean"))], rows)

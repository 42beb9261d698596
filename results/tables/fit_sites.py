"""What `fit` gives at sites that it has never seen."""

from __future__ import annotations

import pandas as pd

from results.numbers import RESULTS, markdown, text

MEASURES = {
    "over_classes": "the new site", "adapted_over_classes": "adapted", "over_samples": "over samples",
    "expected": "expected",
}  # fmt: skip


def table() -> str:
    """Percent at each site, and means over the sites of each dataset."""
    frame = pd.read_csv(RESULTS / "fit-sites" / "sites.csv").assign(order=0)
    fit, columns = ["data", "trainable", "seed"], ["held_out", *MEASURES]
    means = frame.groupby(fit, as_index=False)[columns].mean().assign(site="mean", method="", order=1)
    rows = [
        [
            f"{row['data']}, {row['trainable']}",
            *row[["seed", "site", "method"]].astype(str),
            *(text(100 * row[c]) for c in columns),
        ]
        for _, row in pd.concat([frame, means]).sort_values([*fit, "order", "site"]).iterrows()
    ]
    heads = ["over classes: held-out sites", *MEASURES.values()]
    return markdown(["data, trained", "seed", "site", "method", *heads], rows)

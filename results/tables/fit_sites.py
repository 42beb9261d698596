"""What `fit` gives at sites that it has never seen."""

from __future__ import annotations

import pandas as pd

from results.numbers import RESULTS, markdown, text


def table() -> str:
    """Percent at each site, and means over the sites of each dataset."""
    frame = pd.read_csv(RESULTS / "fit-sites" / "sites.csv")
    columns = ["held_out", "over_classes", "adapted_over_classes", "over_samples", "expected"]
    means = frame.groupby(["data", "trainable"], as_index=False)[columns].mean().assign(site="mean", method="")
    rows = [
        [f"{row['data']}, {row['trainable']}", row["site"], row["method"], *(text(100 * row[c]) for c in columns)]
        for _, row in pd.concat([frame, means]).sort_values(["data", "trainable"], kind="stable").iterrows()
    ]
    heads = ["over classes: held-out sites", "the new site", "adapted", "over samples", "expected"]
    return markdown(["data, trained", "site", "method", *heads], rows)

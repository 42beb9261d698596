"""What labels of a new site bring."""

from __future__ import annotations

import pandas as pd

from results.numbers import RESULTS, markdown


def table() -> str:
    """Accuracy at an unseen PACS domain after `adapt` with suggested labels; random ones in parentheses."""
    frame = pd.read_csv(RESULTS / "new-site" / "labels.csv")
    parts = {**dict(list(frame.groupby("target"))), "mean": frame}
    numbers = sorted(frame["labels"].unique())
    rows = []
    for target, part in parts.items():
        means = 100 * part.groupby("labels")[["random", "suggested"]].mean()
        cells = [f"{means['suggested'][number]:.1f} ({means['random'][number]:.1f})" for number in numbers[1:]]
        rows.append([str(target), f"{means['random'][0]:.1f}", *cells])
    return markdown(["target", *(f"{number} labels" for number in numbers)], rows)

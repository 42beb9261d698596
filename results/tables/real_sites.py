"""What `predict` expected at unseen real sites, and the truth there."""

from __future__ import annotations

import pandas as pd

from results.numbers import RESULTS, markdown

LARGE = 200  # samples; with fewer, the truth itself is uncertain


def table() -> str:
    """Error, coverage and width for each data set and class mix."""
    frame, rows = pd.read_csv(RESULTS / "new-site" / "real-signals.csv"), []
    new = frame[(frame["role"] == "new") & (frame["n"] >= LARGE)]
    for (data, mix), part in new.groupby(["data", "mix"]):
        error = part["said"] - part["accuracy"]
        covers = part["accuracy"].between(part["low"], part["high"])
        shown = [f"{100 * error.abs().mean():.1f}", f"{100 * error.mean():+.1f}", f"{100 * covers.mean():.0f}"]
        rows.append([str(data), str(mix), f"{100 * part['accuracy'].mean():.0f}", *shown,
                     f"{100 * (part['high'] - part['low']).mean():.0f}"])  # fmt: skip
    return markdown(["data, network", "class mix", "true, %", "error", "bias", "covers, %", "width"], rows)

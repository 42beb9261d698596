"""What `predict` expected at unseen real sites, and the truth there."""

from __future__ import annotations

import pandas as pd

from results.numbers import RESULTS, markdown

LARGE = 200  # samples; with fewer, the truth itself is uncertain


def table() -> str:
    """Error, coverage and width for each data set and class mix; error and coverage without adapting."""
    frame, rows = pd.read_csv(RESULTS / "new-site" / "real-signals.csv"), []
    new = frame[(frame["role"] == "new") & (frame["n"] >= LARGE)]
    for (data, mix), part in new.groupby(["data", "mix"]):
        error, covers = judged(part, "")
        plain_error, plain_covers = judged(part, "plain_")
        shown = [f"{100 * error.abs().mean():.1f}", f"{100 * error.mean():+.1f}", f"{100 * covers.mean():.0f}"]
        rows.append([str(data), str(mix), f"{100 * part['accuracy'].mean():.0f}", *shown,
                     f"{100 * (part['high'] - part['low']).mean():.0f}",
                     f"{100 * plain_error.abs().mean():.1f}", f"{100 * plain_covers.mean():.0f}"])  # fmt: skip
    heads = ["data, network", "class mix", "true, %", "error", "bias", "covers, %", "width"]
    return markdown([*heads, "not adapted: error", "covers, %"], rows)


def judged(rows: pd.DataFrame, kind: str) -> tuple[pd.Series[float], pd.Series[bool]]:
    """Error of what was said, and whether the interval covers the truth."""
    truth = rows[f"{kind}accuracy"]
    return rows[f"{kind}said"] - truth, truth.between(rows[f"{kind}low"], rows[f"{kind}high"])

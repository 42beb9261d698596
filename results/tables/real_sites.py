"""What `predict` expected at unseen real sites, and the truth there."""

from __future__ import annotations

import pandas as pd

from results.numbers import RESULTS, markdown

FIT = ["data", "seed", "target"]
LARGE = 200  # samples; with fewer, the truth itself is uncertain


def table() -> str:
    """Error, coverage and width for each data set and class mix; the error of the mean of the held-out sites."""
    frame, rows = pd.read_csv(RESULTS / "new-site" / "real-signals.csv"), []
    held_out = frame[frame["role"] == "held out"].groupby(FIT)["accuracy"].mean().rename("held_out")
    new = frame[(frame["role"] == "new") & (frame["n"] >= LARGE)].join(held_out, on=FIT)
    for (data, mix), part in new.groupby(["data", "mix"]):
        truth = part["accuracy"]
        error, covers = part["said"] - truth, truth.between(part["low"], part["high"])
        rows.append([
            str(data), str(mix), f"{100 * truth.mean():.0f}", f"{100 * error.abs().mean():.1f}",
            f"{100 * (part['held_out'] - truth).abs().mean():.1f}", f"{100 * error.mean():+.1f}",
            f"{100 * covers.mean():.0f}", f"{100 * (part['high'] - part['low']).mean():.0f}",
        ])  # fmt: skip
    heads = ["true, %", "error", "error: held-out mean", "bias", "covers, %", "width"]
    return markdown(["data, network", "class mix", *heads], rows)

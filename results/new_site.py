"""Tables of docs/results/new-site.md, from results/new-site: coverage, errors, and what labels bring."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from results.numbers import RESULTS, markdown
from scipy import special

from longshift.analysis import Evidence, corrected_estimate, logit_share, one_more_site

FOLDER = RESULTS / "new-site"
TUNED = {"vectors": 15, "digits": 7, "pacs": 0}  # seeds below these chose the priors and are not in the tables
ESTIMATES = {"confidence": "mean confidence", "atc": "ATC", "doc": "DoC"}


def cases(file: Path = FOLDER / "signals.csv") -> pd.DataFrame:
    """One row per case that did not choose the priors: what the fit says about the new site, and the truth."""
    frame = pd.read_csv(file)
    frame = frame[frame["seed"] >= frame["data"].map(TUNED)]
    return pd.DataFrame([_case(group) for _, group in frame.groupby("case", sort=False)])


def _case(rows: pd.DataFrame) -> dict[str, Any]:
    new = rows[rows["role"] == "new"].iloc[0]
    held = rows[rows["role"] == "held out"]
    before = one_more_site(held["accuracy"].tolist(), held["n"].tolist())
    found = corrected_estimate(
        _evidence(new),
        [_evidence(row) for _, row in held.iterrows()],
        [logit_share(accuracy, n) for accuracy, n in zip(held["accuracy"], held["n"], strict=True)],
    )
    truth = float(special.expit(logit_share(new["accuracy"], new["n"])))  # as the intervals count: never 0 or 1
    return {
        "data": new["data"], "sites": len(held), "truth": new["accuracy"], "mean": before.mean,
        "fit_covers": before.low <= truth <= before.high, "fit_width": before.high - before.low,
        "estimate": found.mean, "covers": found.low <= truth <= found.high, "width": found.high - found.low,
        **{name: new[name] for name in ESTIMATES},
    }  # fmt: skip


def _evidence(row: Mapping[str, Any] | pd.Series) -> Evidence:
    estimates = [logit_share(row[name], row["n"]) for name in ESTIMATES]
    return Evidence(sum(estimates) / len(estimates), float(row["distance"]))


def groups() -> list[tuple[str, str, pd.DataFrame]]:
    """Name of the data, numbers of held-out sites and their cases; all cases last."""
    found = cases()
    made = []
    for data, part in found.groupby("data"):
        few, more = (part[part["sites"] < 5], part[part["sites"] >= 5])
        for some in (few, more):
            if len(some):
                low, high = some["sites"].min(), some["sites"].max()
                made.append((str(data), f"{low} to {high}" if low < high else str(low), some))
    return [*made, ("all", "2 to 5", found)]


def coverage_table() -> str:
    """How often the two intervals hold the truth, and how wide they are."""
    rows = [
        [
            data,
            sites,
            str(len(part)),
            *(f"{100 * part[name].mean():.0f}" for name in ("fit_covers", "fit_width", "covers", "width")),
        ]
        for data, sites, part in groups()
    ]
    heads = ["data", "held-out sites", "cases", "`fit`: covers, %", "width", "`predict`: covers, %", "width"]
    return markdown(heads, rows)


def error_table() -> str:
    """Mean absolute error in points of what can be said about the new site."""
    columns = {"mean": "mean of the held-out sites", **ESTIMATES, "estimate": "`predict`"}
    rows = []
    for data, sites, part in groups():
        errors = [f"{100 * (part[name] - part['truth']).abs().mean():.1f}" for name in columns]
        rows.append([data, sites, f"{100 * part['truth'].mean():.0f}", *errors])
    return markdown(["data", "held-out sites", "true accuracy, %", *columns.values()], rows)


def label_table() -> str:
    """Accuracy at an unseen PACS domain after adapting with labels of it: suggested, and random in parentheses."""
    frame = pd.read_csv(FOLDER / "labels.csv")
    means = frame.groupby(["target", "labels"])[["random", "suggested"]].mean()
    numbers = sorted(frame["labels"].unique())
    overall = frame.groupby("labels")[["random", "suggested"]].mean()
    rows = []
    for target in (*sorted(frame["target"].unique()), "mean"):
        found = [overall.loc[n] if target == "mean" else means.loc[(target, n)] for n in numbers]
        cells = [f"{100 * row['suggested']:.1f} ({100 * row['random']:.1f})" for row in found[1:]]
        rows.append([target, f"{100 * found[0]['random']:.1f}", *cells])
    return markdown(["target", *(f"{n} labels" for n in numbers)], rows)

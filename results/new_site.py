"""Tables of docs/results/new-site.md, from results/new-site: coverage, errors, and what labels bring."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from benchmarks.label_free_constants import FIRST_SEED, Floats, choosing_rows, design, distinct_rows, fit_constants
from results.numbers import RESULTS, markdown
from scipy import special

from longshift.analysis import Evidence, Range, corrected_estimate, logit_share, one_more_site
from longshift.inference.site_estimate import ONE_SITE
from longshift.inference.site_signals import AGREEMENT, CONSTANT, DISPERSITY

FOLDER = RESULTS / "new-site"
ESTIMATES = {"confidence": "mean confidence", "atc": "ATC", "doc": "DoC"}
USUAL = ("as is", "tail 10")  # class frequencies of the cases that count; stronger shifts have their own table


def cases(file: Path = FOLDER / "signals.csv") -> pd.DataFrame:
    """One row per case and class mix that chose no constants: what the fit says about the new site, and the truth."""
    frame = pd.read_csv(file)
    chosen = choosing_rows(frame)
    known = pd.concat([chosen, distinct_rows(frame[frame["data"] == "pacs"])])
    shipped = np.array([CONSTANT, AGREEMENT, DISPERSITY])
    judged = frame[frame["seed"] < FIRST_SEED]
    others = {
        data: fit_constants(known[known["data"] != data]) if (chosen["data"] == data).any() else shipped
        for data in judged["data"].unique()
    }
    return pd.DataFrame(
        [
            _case(
                group[(group["role"] == "held out") | (group["mix"] == mix)],
                shipped,
                others[str(group["data"].iloc[0])],
            )
            for _, group in judged.groupby("case", sort=False)
            for mix in group.loc[group["role"] == "new", "mix"]
        ]
    )


def _case(rows: pd.DataFrame, shipped: Floats, others: Floats) -> dict[str, Any]:
    new = rows[rows["role"] == "new"].iloc[0]
    held = rows[rows["role"] == "held out"]
    before = one_more_site(held["accuracy"].tolist(), held["n"].tolist())
    found = _estimate(rows, shipped)
    truth = float(special.expit(logit_share(new["accuracy"], new["n"])))  # as the intervals count: never 0 or 1
    return {
        "data": new["data"], "mix": new["mix"], "sites": len(held), "truth": new["accuracy"], "mean": before.mean,
        "fit_covers": before.low <= truth <= before.high, "fit_width": before.high - before.low,
        "estimate": found.mean, "covers": found.low <= truth <= found.high, "width": found.high - found.low,
        "others": _estimate(rows, others).mean, **{name: new[name] for name in ESTIMATES},
    }  # fmt: skip


def _estimate(rows: pd.DataFrame, constants: Floats) -> Range:
    """What `predict` says about the new site, with these constants."""
    scores = design(rows) @ constants
    held = [
        Evidence(float(score), logit_share(row["accuracy"], row["n"]), 1.0 if row["trained_on"] > 1 else ONE_SITE)
        for score, (_, row) in zip(scores, rows.iterrows(), strict=True)
        if row["role"] == "held out"
    ]
    return corrected_estimate(float(scores[(rows["role"] == "new").to_numpy()][0]), held)


def groups() -> list[tuple[str, str, pd.DataFrame]]:
    """Name of the data, numbers of held-out sites and their cases; all cases last."""
    found = cases()
    found = found[found["mix"].isin(USUAL)]
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
    columns = {
        "mean": "mean of the held-out sites", **ESTIMATES, "estimate": "`predict`", "others": "constants of other data"
    }  # fmt: skip
    rows = []
    for data, sites, part in groups():
        errors = [f"{100 * (part[name] - part['truth']).abs().mean():.1f}" for name in columns]
        rows.append([data, sites, f"{100 * part['truth'].mean():.0f}", *errors])
    return markdown(["data", "held-out sites", "true accuracy, %", *columns.values()], rows)


def mix_table() -> str:
    """Coverage and error of `predict` where the new site has other class frequencies."""
    rows = []
    for mix, part in cases().groupby("mix", sort=False):
        error = 100 * (part["estimate"] - part["truth"])
        plain = 100 * (part["confidence"] - part["truth"])
        values = (100 * part["truth"].mean(), plain.abs().mean(), error.abs().mean(), error.mean())
        rows.append(
            [str(mix), str(len(part)), *(f"{value:.1f}" for value in values), f"{100 * part['covers'].mean():.0f}"]
        )
    heads = ["classes at the new site", "cases", "true accuracy, %", "mean confidence: error", "`predict`: error"]
    return markdown([*heads, "mean of estimate - truth", "covers, %"], rows)


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

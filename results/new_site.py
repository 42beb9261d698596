"""Tables of docs/results/new-site.md, from results/new-site: coverage, errors, and what labels bring."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from scipy import special

from benchmarks.label_free_constants import (
    FIRST_SEED,
    MIXES,
    PARTS,
    Floats,
    choosing_rows,
    distinct_rows,
    fit_constants,
    fit_widths,
    ranges,
    warned,
)
from longshift.inference import expected_accuracy, one_more_site
from longshift.inference.expected_accuracy import AGREEMENT, CONSTANT, DISPERSITY, FEW
from results.numbers import RESULTS, markdown

FOLDER = RESULTS / "new-site"
ESTIMATES = {"confidence": "mean confidence", "atc": "ATC", "doc": "DoC"}
SHIPPED = np.array([CONSTANT, AGREEMENT, DISPERSITY])
WIDTHS = np.array([getattr(expected_accuracy, name) for name in PARTS])
USUAL = ("as is", "tail 10")  # class frequencies of the cases that count; stronger shifts have their own table


def cases(file: Path = FOLDER / "signals.csv") -> pd.DataFrame:
    """One row per case and class mix that chose no constants: what the fit says about the new site, and the truth."""
    frame = pd.read_csv(file)
    chosen = choosing_rows(frame)
    pacs = frame[frame["data"] == "pacs"]
    known = pd.concat([chosen, distinct_rows(pacs[pacs["mix"].isin(MIXES)])])
    for_width = pd.concat([frame[frame["seed"] >= FIRST_SEED], pacs])
    judged = frame[frame["seed"] < FIRST_SEED]
    made = []
    for data, rows in judged.groupby("data"):
        found = ranges(rows, SHIPPED)
        found["estimate"], found["half_width"] = special.expit(found["center"]), _half_width(found, WIDTHS)
        if (chosen["data"] == data).any():
            constants = fit_constants(known[known["data"] != data])
            widths = fit_widths(ranges(for_width[for_width["data"] != data], constants))
            other = ranges(rows, constants)
        else:
            other, widths = found, WIDTHS
        found["others"], found["others_half"] = special.expit(other["center"]), _half_width(other, widths)
        for name, middle, half in (
            ("held_out", found["center"], found["half"]),
            ("predict", found["center"], found["half_width"]),
            ("others", other["center"], found["others_half"]),
        ):
            found[f"{name}_covers"] = (found["truth"] - middle).abs() <= half
            found[f"{name}_width"] = special.expit(middle + half) - special.expit(middle - half)
        made.append(found.merge(_fit_ranges(rows), on="case"))
    table = pd.concat(made, ignore_index=True)
    table["fit_covers"] = table["truth"].between(special.logit(table["low"]), special.logit(table["high"]))
    return table.assign(fit_width=table["high"] - table["low"], truth=table["accuracy"])


def _half_width(found: pd.DataFrame, widths: Floats) -> pd.Series:
    """Half the interval of `predict`, in logits, with these constants."""
    return found["half"] * (found[list(PARTS)].to_numpy() @ widths)


def _fit_ranges(rows: pd.DataFrame) -> pd.DataFrame:
    """What the held-out sites of each case alone say about one more."""
    made = []
    for case, held in rows[rows["role"] == "held out"].groupby("case"):
        found = one_more_site(held["accuracy"].tolist(), held["n"].tolist())
        made.append({"case": case, "sites": len(held), "mean": found.mean, "low": found.low, "high": found.high})
    return pd.DataFrame(made)


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
    names = ("fit_covers", "fit_width", "predict_covers", "predict_width")
    rows = [
        [
            data,
            sites,
            str(len(part)),
            *(f"{100 * part[name].mean():.0f}" for name in names),
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
            [
                str(mix),
                str(len(part)),
                *(f"{value:.1f}" for value in values),
                f"{100 * part['predict_covers'].mean():.0f}",
            ]
        )
    heads = ["classes at the new site", "cases", "true accuracy, %", "mean confidence: error", "`predict`: error"]
    return markdown([*heads, "mean of estimate - truth", "covers, %"], rows)


def warning_table() -> str:
    """Coverage and width of `predict` by the warnings that apply, over all class mixes."""
    found = cases()
    _, far, dominated, few = (found[name] > 0 for name in PARTS)
    kinds = {
        "no warning": ~warned(found), "far": far, "one class dominates": dominated,
        "far, one class dominates": far & dominated, f"fewer than {FEW} samples": few, "all": found["n"] > 0,
    }  # fmt: skip
    rows = []
    for kind, chosen in kinds.items():
        for data in (*sorted(found["data"].unique()), "all"):
            part = found[chosen & ((found["data"] == data) | (data == "all"))]
            error = 100 * (part["estimate"] - part["truth"])
            numbers = [
                f"{100 * part[f'{name}_{what}'].mean():.0f}"
                for name in ("held_out", "predict", "others")
                for what in ("covers", "width")
            ]
            rows.append([kind, data, str(len(part)), f"{error.abs().mean():.1f}", f"{error.mean():.1f}", *numbers])
    heads = ["warning", "data", "cases", "error", "mean of estimate - truth"]
    sources = ("held-out errors alone", "`predict`", "constants of other data")
    return markdown([*heads, *(text for source in sources for text in (f"{source}: covers, %", "width"))], rows)


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

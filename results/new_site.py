"""What a fit said about new sites, and the truth there: the cases in results/new-site/signals.csv."""

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
)
from longshift.inference import expected_accuracy, one_more_site
from longshift.inference.expected_accuracy import AGREEMENT, CONSTANT, DISPERSITY
from results.numbers import RESULTS

FOLDER = RESULTS / "new-site"
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

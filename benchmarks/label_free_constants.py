"""The constants of the label-free estimate, from the rows that `benchmarks.new_site` keeps for them.

    python -m benchmarks.label_free_constants [results/new-site/signals.csv]

Fits the accuracy at a site by a logistic function of the logits of agreement and dispersity, with the same weight for
each dataset, on the seeds from 100 on, sites as they are and with other class frequencies. The printed numbers stand
in `longshift/inference/site_signals.py`. PACS has no such seeds: it plays no part in the choice.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import special
from scipy.optimize import minimize

from longshift.analysis import logit_share

FIRST_SEED = 100  # of the rows that choose; those below judge
SIGNALS = ("agreement", "dispersity")
PENALTY = 0.02  # on the squared weights of the signals
ONE_SITE = 0.5  # weight of a row whose model was trained on a single site

Floats = npt.NDArray[np.float64]


def choosing_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows that choose constants."""
    return distinct_rows(frame[frame["seed"] >= FIRST_SEED])


def distinct_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Each model and site once; several cases may share them."""
    return rows.drop_duplicates(["data", "seed", "site", "mix", "trained_on", "accuracy", *SIGNALS])


def design(rows: pd.DataFrame) -> Floats:
    """A one and the logits of the signals, per row."""
    columns = [[logit_share(value, n) for value, n in zip(rows[name], rows["n"], strict=True)] for name in SIGNALS]
    return np.column_stack([np.ones(len(rows)), *columns])


def fit_constants(rows: pd.DataFrame) -> Floats:
    """The constant and the weights of agreement and dispersity."""
    x, y = design(rows), rows["accuracy"].to_numpy()
    weights = np.where(rows["trained_on"] == 1, ONE_SITE, 1.0) / rows.groupby("data")["site"].transform("size")
    weights = (weights / weights.sum()).to_numpy()

    def loss(coefficients: Floats) -> tuple[float, Floats]:
        found = special.expit(x @ coefficients)
        cross = -(weights * (special.xlogy(y, found) + special.xlogy(1 - y, 1 - found))).sum()
        slope = x.T @ (weights * (found - y))
        slope[1:] += PENALTY * coefficients[1:]
        return float(cross + PENALTY * np.square(coefficients[1:]).sum() / 2), slope

    return np.asarray(minimize(loss, np.zeros(x.shape[1]), jac=True, method="BFGS").x)


def main() -> None:
    """Print the constants."""
    file = Path(sys.argv[1] if len(sys.argv) > 1 else "results/new-site/signals.csv")
    constant, *weights = fit_constants(choosing_rows(pd.read_csv(file)))
    print(f"CONSTANT, AGREEMENT, DISPERSITY = {constant:.2f}, {weights[0]:.2f}, {weights[1]:.2f}")


if __name__ == "__main__":
    main()

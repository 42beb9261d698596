"""The constants of the label-free estimate, from the rows that `benchmarks.new_site` keeps for them.

    python -m benchmarks.label_free_constants [results/new-site/signals.csv]

Fits the accuracy at a site by a logistic function of the logits of agreement and dispersity, with the same weight for
each dataset, on the seeds from 100 to 199, sites as they are and with other class frequencies. The printed numbers
stand in `longshift/inference/expected_accuracy.py`.

On all seeds from 100 on, with these numbers given, fits how much wider than the errors at held-out sites ask for the
interval must be: the quantile (`LEVEL`) of the error divided by that width, both in logits, as a constant and what the
excess of the distance, the dominance of a class and few samples add, none of it negative. Sites without any of these
weigh as much together as all others. Quantile regression of the errors of held-out cases is conformal prediction with
coverage in groups (Gibbs, Cherian and Candes 2023). The printed numbers stand in the same file.
PACS has no such seeds: it plays no part in either choice.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse, special
from scipy.optimize import linprog, minimize

from longshift.inference import LEVEL, Doubt, Evidence, corrected_estimate, logit_share, relative_excess
from longshift.inference.expected_accuracy import AGREEMENT, CONSTANT, DISPERSITY, ONE_SITE as HELD_ONE_SITE

FIRST_SEED = 100  # of the rows that choose; those below judge
FAR_SEED = 200  # of the rows with far sites too, which choose the width of the interval only
MIXES = ("as is", "tail 10", "tail 50", "70% one class", "90% one class")
SIGNALS = ("agreement", "dispersity")
PENALTY = 0.02  # on the squared weights of the signals
ONE_SITE = 0.5  # weight of a row whose model was trained on a single site

PARTS = ("USUAL_WIDTH", "DISTANCE_WIDTH", "DOMINANCE_WIDTH", "FEW_WIDTH")  # as `Doubt.parts` orders them
EVIDENCE = ("score", "accuracy", "n", "trained_on")

Floats = npt.NDArray[np.float64]


def choosing_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows that choose the constants of the estimate."""
    usual = frame["mix"].isin(MIXES)
    return distinct_rows(frame[usual & (frame["seed"] >= FIRST_SEED) & (frame["seed"] < FAR_SEED)])


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


def ranges(frame: pd.DataFrame, constants: Floats) -> pd.DataFrame:
    """The rows of new sites with the truth and what held-out ones say about them with these constants, in logits."""
    made = []
    for _, rows in frame.assign(score=design(frame) @ constants).groupby("case", sort=False):
        held = rows[rows["role"] == "held out"]
        evidence = [
            Evidence(score, logit_share(accuracy, n), 1.0 if trained_on > 1 else HELD_ONE_SITE)
            for score, accuracy, n, trained_on in zip(*(held[name] for name in EVIDENCE), strict=True)
        ]
        for _, new in rows[rows["role"] == "new"].iterrows():
            found = corrected_estimate(float(new["score"]), evidence)
            excess = relative_excess(new["distance"], held["distance"].max())
            parts = dict(zip(PARTS, Doubt(excess, new["dominance"], new["n"]).parts(), strict=True))
            truth = logit_share(new["accuracy"], new["n"])
            made.append({**new, "center": found.center, "half": found.half, "truth": truth, **parts})
    return pd.DataFrame(made)


def warned(cases: pd.DataFrame) -> pd.Series:
    """Whether a case of `ranges` has a reason for a wider interval."""
    return (cases[list(PARTS[1:])] > 0).any(axis=1)


def fit_widths(cases: pd.DataFrame) -> Floats:
    """The constant of each part of the width; each dataset, with and without a warning, weighs the same."""
    ratios = (cases["truth"] - cases["center"]).abs() / cases["half"]
    weights = 1 / cases.groupby([cases["data"], warned(cases)])["case"].transform("size")
    return quantile_regression(cases[list(PARTS)].to_numpy(), ratios.to_numpy(), weights.to_numpy(), LEVEL)


def quantile_regression(x: Floats, y: Floats, weights: Floats, level: float) -> Floats:
    """Coefficients, none of them negative, whose sum of columns exceeds y in this share of the rows."""
    eye = sparse.identity(len(y))
    costs = np.concatenate([np.zeros(x.shape[1]), level * weights, (1 - level) * weights])
    rows: Any = sparse.hstack([sparse.csr_matrix(x), eye, -eye])  # the stubs of scipy allow dense matrices only
    found = linprog(costs, A_eq=rows, b_eq=y, method="highs")
    if found.x is None:
        raise RuntimeError(f"no quantile regression: {found.message}")
    return np.asarray(found.x[: x.shape[1]])


def main() -> None:
    """Print the constants."""
    frame = pd.read_csv(Path(sys.argv[1] if len(sys.argv) > 1 else "results/new-site/signals.csv"))
    constant, *weights = fit_constants(choosing_rows(frame))
    print(f"CONSTANT, AGREEMENT, DISPERSITY = {constant:.2f}, {weights[0]:.2f}, {weights[1]:.2f}")
    shipped = np.array([CONSTANT, AGREEMENT, DISPERSITY])
    widths = fit_widths(ranges(frame[frame["seed"] >= FIRST_SEED], shipped))
    print(f"{', '.join(PARTS)} = {', '.join(f'{value:.2f}' for value in widths)}")


if __name__ == "__main__":
    main()

"""`adapt` beside logistic regression on the same labels."""

from __future__ import annotations

import pandas as pd

from results.numbers import RESULTS, markdown

MODELS = ("fit", "LogisticRegression", "LogisticRegression, unweighted", "adapt", "adapt, suggested")


def table() -> str:
    """Accuracy at the new site and, in parentheses, its mean over classes: averages over sites and seeds."""
    frame = pd.read_csv(RESULTS / "head-vs-logistic" / "labels.csv")
    rows = []
    for data, part in frame.groupby("data"):
        means = 100 * part.groupby("model")[["accuracy", "over_classes"]].mean()
        cells = [f"{means['accuracy'][name]:.1f} ({means['over_classes'][name]:.1f})" for name in MODELS]
        rows.append([str(data), *cells])
    return markdown(["data", "no labels", *MODELS[1:3], "`adapt`", "`adapt`, labels of `suggest`"], rows)

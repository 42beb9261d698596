"""Heads on frozen features beside logistic regression."""

from __future__ import annotations

import pandas as pd

from results.numbers import RESULTS, markdown

MODELS = ("Majority class", "LogisticRegression", "logistic", "ndcl_plus")


def table() -> str:
    """Accuracy at held-out sites and, in parentheses, its mean over classes: averages over sites and splits."""
    frame = pd.read_csv(RESULTS / "head-vs-logistic" / "heads.csv")
    rows = []
    for (data, setting), part in frame.groupby(["data", "setting"]):
        means = 100 * part.groupby("model")[["accuracy", "over_classes"]].mean()
        cells = [f"{means['accuracy'][name]:.1f} ({means['over_classes'][name]:.1f})" for name in MODELS]
        rows.append([str(data), str(setting), *cells])
    return markdown(["data", "setting", "largest class", "LogisticRegression", "`logistic`", "`ndcl_plus`"], rows)

"""PACS with the paper's network, weights averaged by EMA, beside the paper."""

from __future__ import annotations

import pandas as pd

from longshift.report import method_title
from results import numbers as n

FOLDER = "pacs-resnet50"


def mean(method: str, *settings: str, average: str = "+ema", measure: str = n.TARGET) -> float:
    """Percent, over the four targets of the settings (default: all three)."""
    return float(n.by_method(FOLDER, measure)[f"{method}{average}"].loc[list(settings or n.SETTINGS)].mean())


def lead(method: str) -> tuple[str, str]:
    """Points over ERM, here and in the paper, means over the settings."""
    paper = pd.concat([n.published_means(setting) for setting in n.SETTINGS], axis=1).mean(axis=1)
    known = method != "erm" and method in paper.index
    here = "" if method == "erm" else n.text(mean(method) - mean("erm"), sign=True)
    return here, n.text(paper[method] - paper["erm"], sign=True) if known else ""


def table() -> str:
    """Accuracy in each setting, best means first."""
    rows = []
    for name in sorted(n.methods(FOLDER), key=mean, reverse=True):
        cells = [cell for s in n.SETTINGS for cell in (n.text(mean(name, s)), n.paper_mean(name, s))]
        means = [n.text(mean(name)), n.text(mean(name, average="")), n.text(mean(name, measure=n.FEW))]
        rows.append([method_title(name), *cells, *means])
    heads = [cell for setting in n.SETTINGS for cell in (setting, "paper")]
    return n.markdown(["", *heads, "mean", "not averaged", "rare classes"], rows)

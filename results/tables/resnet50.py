"""PACS under TotalHeavyTail with the paper's network, weights averaged by EMA, by target."""

from __future__ import annotations

from longshift.report import method_title
from results import numbers as n

FOLDER = "pacs-resnet50"


def mean(method: str, average: str = "+ema", measure: str = n.TARGET) -> float:
    """Percent, over the four targets."""
    return float(n.by_method(FOLDER, measure)[f"{method}{average}"].mean())


def lead(method: str) -> tuple[str, str]:
    """Points over ERM, here and in the paper."""
    paper = n.published_means(n.TAIL)
    known = method != "erm" and method in paper.index
    here = "" if method == "erm" else n.text(mean(method) - mean("erm"), sign=True)
    return here, n.text(paper[method] - paper["erm"], sign=True) if known else ""


def table() -> str:
    """Accuracy at each target, best means first."""
    frame, rows = n.by_method(FOLDER, n.TARGET), []
    for name in sorted(n.methods(FOLDER), key=mean, reverse=True):
        cells = [n.text(value) for value in frame[f"{name}+ema"]]
        means = [n.text(mean(name)), n.text(mean(name, "")), n.text(mean(name, measure=n.FEW))]
        rows.append([method_title(name), *cells, *means, *lead(name)])
    targets = [target for _, target, _ in frame.index]
    heads = ["", *targets, "mean", "not averaged", "rare classes", "gain over ERM", "gain in the paper"]
    return n.markdown(heads, rows)

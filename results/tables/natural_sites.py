"""HAM10000 and white blood cells: the whole ResNet-50 v1 with averaged weights, and heads on its frozen features."""

from __future__ import annotations

from longshift.report import method_title
from results import numbers as n

DATA = ("HAM10000", "WBC")
WHOLE, FROZEN = "natural-sites", "natural-sites/frozen"
MEASURES = {"over classes": n.BALANCED, "over samples": n.TARGET, "rare": n.FEW}
HEADS = {n.UNSTYLED: "ndcl_plus", "ndcl_plus": ""}  # a head never mixes styles


def table() -> str:
    """Means over the four sites of each dataset: the whole network with EMA, then heads, over classes."""
    rows = []
    for name in sorted({*n.methods(WHOLE), *n.methods(FROZEN)}, key=method_title):
        cells, head = [], HEADS.get(name, name)
        for data in DATA:
            for measure in MEASURES.values():
                known = name in n.methods(WHOLE)
                cells.append(n.text(n.site_mean(WHOLE, data, f"{name}+ema", measure)) if known else "-")
            if head:
                trials = n.by_method(FROZEN, n.BALANCED, data.lower())[head].groupby("trial").mean()
                cells.append(n.text(trials.mean(), trials.std()))
            else:
                cells.append("-")
        rows.append([method_title(name), *cells])
    heads = [f"{data}: {head}" for data in DATA for head in (*MEASURES, "frozen, over classes")]
    return n.markdown(["", *heads], rows)

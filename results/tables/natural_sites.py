"""HAM10000 and white blood cells, ResNet-50 v1, weights averaged by EMA."""

from __future__ import annotations

from longshift.report import method_title
from results import numbers as n

FOLDER = "natural-sites"
MEASURES = {"over classes": n.BALANCED, "over samples": n.TARGET, "rare classes": n.FEW}


def table() -> str:
    """Means over the four sites of each dataset, with EMA; the first also without it."""
    datasets, rows = ("HAM10000", "WBC"), []
    for name in n.methods(FOLDER):
        cells = [
            n.text(n.site_mean(FOLDER, data, column, measure))
            for data in datasets
            for column, measure in ((name, n.BALANCED), *((f"{name}+ema", m) for m in MEASURES.values()))
        ]
        rows.append([method_title(name), *cells])
    heads = [f"{data}: {head}" for data in datasets for head in ("over classes, not averaged", *MEASURES)]
    return n.markdown(["", *heads], rows)

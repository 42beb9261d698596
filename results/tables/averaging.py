"""What averaging the weights (EMA) gains, by dataset."""

from __future__ import annotations

import pandas as pd

from results import numbers as n

PLACES = (("PACS", "pacs-resnet50"), ("HAM10000", "natural-sites"), ("WBC", "natural-sites"))


def table() -> str:
    """Points over classes, on validation and at the unseen domain: means over methods and trials, then over targets."""
    rows, every = [], []
    for title, folder in PLACES:
        found = []
        for measure in ("validation_balanced", n.BALANCED):
            frame = n.by_method(folder, measure, title if folder == "natural-sites" else "")
            names = [name for name in n.methods(folder) if name in frame]
            gained = pd.concat([frame[f"{name}+ema"] - frame[name] for name in names], axis=1).mean(axis=1)
            found.append(gained.groupby("target").mean())
        every.append(pd.concat(found, axis=1))
        rows.append([title, str(len(found[0])), *map(n.interval, found)])
    together = pd.concat(every)
    rows.append(["all", str(len(together)), *(n.interval(together[column]) for column in together)])
    return n.markdown(["averaged minus selected", "targets", "validation", "unseen domain"], rows)

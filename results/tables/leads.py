"""Leads over ERM and BSoftmax in the paper and in two series of runs."""

from __future__ import annotations

import pandas as pd

from results import numbers as n

PAIRS = (("ndcl", "erm"), ("bsoftmax", "erm"), ("ndcl", "bsoftmax"), (n.UNSTYLED, "bsoftmax"))
SERIES = {  # both folders of the first have the same protocol: seeds 0 to 2 and 3 to 5
    "600 steps, 160 px": (n.TUNED, n.CONFIRM), "frozen features": (n.FROZEN,),
}  # fmt: skip


def table() -> str:
    """Differences in points with 95 % intervals."""
    rows = []
    for one, other in PAIRS:
        for setting in n.SETTINGS:
            cells = [n.interval(_gaps(folders, one, other, setting)) for folders in SERIES.values()]
            rows.append([f"{n.pair_title(one, other)}: {setting}", _published(one, other, setting), *cells])
    return n.markdown(["points", "paper", *SERIES], rows)


def _gaps(folders: tuple[str, ...], one: str, other: str, setting: str) -> pd.Series[float]:
    there = [folder for folder in folders if {one, other} <= set(n.methods(folder))]
    return pd.concat([n.gaps((folder, one), (folder, other), settings=(setting,)) for folder in there])


def _published(one: str, other: str, setting: str) -> str:
    means = n.published_means(setting)
    return n.text(means[one] - means[other], sign=True) if one in means.index else "-"

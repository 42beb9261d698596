"""Leads over ERM and BSoftmax in the paper and in three series of runs."""

from __future__ import annotations

import pandas as pd

from results import numbers as n
from results.tables import resnet50

PAIRS = (("ndcl", "erm"), ("bsoftmax", "erm"), ("ndcl", "bsoftmax"), ("ndcl_plus", "bsoftmax"))
SERIES = {  # both folders of MobileNetV2 have the same protocol: seeds 0 to 2 and 3 to 5
    "ResNet-50": ((resnet50.FOLDER,), "+ema"),
    "MobileNetV2": ((n.TUNED, n.CONFIRM), ""),
    "frozen features": ((n.FROZEN,), ""),
}


def table() -> str:
    """Differences in points with 95 % intervals."""
    rows = []
    for one, other in PAIRS:
        for setting in n.SETTINGS:
            cells = [_gaps(folders, one, other, average, setting) for folders, average in SERIES.values()]
            rows.append([f"{n.pair_title(one, other)}: {setting}", _published(one, other, setting), *cells])
    return n.markdown(["points", "paper", *SERIES], rows)


def _gaps(folders: tuple[str, ...], one: str, other: str, average: str, setting: str) -> str:
    there = [folder for folder in folders if {one, other} <= set(n.methods(folder))]
    found = [n.gaps((folder, one + average), (folder, other + average), settings=(setting,)) for folder in there]
    return n.interval(pd.concat(found)) if found else "-"


def _published(one: str, other: str, setting: str) -> str:
    means = n.published_means(setting)
    return n.text(means[one] - means[other], sign=True) if one in means.index else "-"

"""Leads over ERM and BSoftmax in the paper and in three series of runs."""

from __future__ import annotations

import pandas as pd

from results import numbers as n
from results.tables import resnet50

PAIRS = (("ndcl", "erm"), ("bsoftmax", "erm"), ("ndcl", "bsoftmax"))
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
            paper = n.published_means(setting)
            cells = [n.text(paper[one] - paper[other], sign=True)]
            for folders, average in SERIES.values():
                pairs = [((folder, one + average), (folder, other + average)) for folder in folders]
                cells.append(n.interval(pd.concat([n.gaps(*pair, settings=(setting,)) for pair in pairs])))
            rows.append([f"{n.pair_title(one, other)}: {setting}", *cells])
    return n.markdown(["points", "paper", *SERIES], rows)

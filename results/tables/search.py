"""What the published search gains: ten draws against the defaults, on the embedded features of PACS."""

from __future__ import annotations

import pandas as pd

from longshift.report import method_title
from longshift.sweep import choose
from results import numbers as n

FOLDER = f"{n.FROZEN}/search"
PAIRS = (("ndcl", "erm"), ("ndcl", "bsoftmax"))


def searched() -> pd.DataFrame:
    """Percent on the target in the draw with the best validation accuracy, as `n.by_method` has it for the defaults."""
    return 100 * choose(n.table(FOLDER)).set_index([*n.PAIR, "method"])[n.TARGET].unstack("method")


def table() -> str:
    """A row per lead of NDCL, then what each method gains by the search."""
    before, after, rows = n.by_method(FOLDER, n.TARGET), searched(), []
    for one, other in PAIRS:
        gaps = [frame[one] - frame[other] for frame in (before, after)]
        rows.append([n.pair_title(one, other), *(n.interval(gap.loc[setting]) for setting in n.BOTH for gap in gaps)])
    for name in n.methods(FOLDER):
        gain = after[name] - before[name]
        rows.append([f"{method_title(name)}: search - defaults", *(
            cell for setting in n.BOTH for cell in ("", n.interval(gain.loc[setting]))
        )])  # fmt: skip
    heads = [f"{setting}, {how}" for setting in n.BOTH for how in ("defaults", "ten draws")]
    return n.markdown(["points", *heads], rows)

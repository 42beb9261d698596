"""What the published search gains over the defaults on PACS: heads on embedded features and whole networks."""

from __future__ import annotations

import pandas as pd

from longshift.report import method_title
from longshift.sweep import choose
from results import numbers as n

SERIES = {"frozen features": f"{n.FROZEN}/search", "whole network": f"{n.TUNED}/search"}
PAIRS = (("ndcl", "erm"), ("ndcl", "bsoftmax"))


def searched(folder: str) -> pd.DataFrame:
    """Percent on the target in the draw with the best validation accuracy, as `n.by_method` has it for the defaults."""
    return 100 * choose(n.table(folder)).set_index([*n.PAIR, "method"])[n.TARGET].unstack("method")


def table() -> str:
    """A row per lead of NDCL and setting, then what each method gains by the search in both settings."""
    series = [(n.by_method(folder, n.TARGET), searched(folder)) for folder in SERIES.values()]
    rows = [
        [f"{n.pair_title(one, other)}: {setting}", *(
            n.interval((frame[one] - frame[other]).loc[setting]) for both in series for frame in both
        )]
        for one, other in PAIRS for setting in n.BOTH
    ]  # fmt: skip
    for name in ("erm", "bsoftmax", "ndcl"):
        gains = [cell for before, after in series for cell in ("", n.interval(after[name] - before[name]))]
        rows.append([f"{method_title(name)}: search - defaults", *gains])
    heads = [
        f"{title}, {how}"
        for title, folder in SERIES.items() for how in ("defaults", f"{n.table(folder)['draw'].nunique()} draws")
    ]  # fmt: skip
    return n.markdown(["points", *heads], rows)

"""HAM10000 and white blood cells: paired differences over classes, averaged weights."""

from __future__ import annotations

import pandas as pd

from longshift.report import method_title
from results import numbers as n
from results.tables.natural_sites import DATA, WHOLE

PAIRS = (
    ("bsoftmax", "erm"),
    ("reweight", "bsoftmax"),
    ("ndcl", "bsoftmax"),
    ("ndcl_plus", "bsoftmax"),
    (n.UNSTYLED, "bsoftmax"),
)


def by_site(data: str, measure: str = n.BALANCED) -> pd.DataFrame:
    """Percent of each method at each site and trial, with the NDCL-plus whose style the other sites choose."""
    found = n.by_method(WHOLE, measure, data).droplevel("setting")
    gain = found["ndcl_plus+ema"] - found[f"{n.UNSTYLED}+ema"]
    elsewhere = gain.groupby("trial").transform("sum") - gain
    found["chosen+ema"] = found[f"{n.UNSTYLED}+ema"] + gain.where(elsewhere > 0, 0.0)
    return found


def lead(data: str, method: str, other: str, measure: str = n.BALANCED) -> str:
    """The difference with its interval over pairs of site and trial."""
    found = by_site(data, measure)
    return n.interval(found[f"{method}+ema"] - found[f"{other}+ema"])


def table() -> str:
    """A row per pair of methods."""
    rows = [[n.pair_title(*pair), *(lead(data, *pair) for data in DATA)] for pair in PAIRS]
    plus = method_title("ndcl_plus")
    rows.append(
        [f"{plus}, style as the other sites choose - {method_title('bsoftmax')}",
         *(lead(data, "chosen", "bsoftmax") for data in DATA)]
    )  # fmt: skip
    for title, measure in (("unseen site", n.BALANCED), ("validation", "validation_balanced")):
        rows.append([f"{plus}: style on - off, {title}", *(lead(d, "ndcl_plus", n.UNSTYLED, measure) for d in DATA)])
    return n.markdown(["points over classes", *DATA], rows)

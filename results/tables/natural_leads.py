"""HAM10000 and white blood cells: paired differences over classes, averaged weights."""

from __future__ import annotations

import pandas as pd

from longshift.report import method_title
from results import numbers as n
from results.tables.natural_sites import DATA, WHOLE

PLUS, CHOSEN = method_title("ndcl_plus"), "chosen"  # style mixing or not, by the runs for the other sites
PAIRS = (("bsoftmax", "erm"), *((name, "bsoftmax") for name in ("reweight", "ndcl", "ndcl_plus", n.UNSTYLED)))
ROWS = (
    *((n.pair_title(*pair), *pair, n.BALANCED) for pair in PAIRS),
    (f"{PLUS}, style as `fit` would choose - {method_title('bsoftmax')}", CHOSEN, "bsoftmax", n.BALANCED),
    (f"{PLUS}: style on - off, unseen site", "ndcl_plus", n.UNSTYLED, n.BALANCED),
    (f"{PLUS}: style on - off, validation", "ndcl_plus", n.UNSTYLED, n.VALIDATION),
)


def lead(data: str, method: str, other: str, measure: str) -> str:
    """The difference with its interval over pairs of site and trial."""
    found: pd.DataFrame = n.by_method(WHOLE, measure, data)
    off, on = f"{n.UNSTYLED}+ema", "ndcl_plus+ema"
    validation: pd.DataFrame = n.by_method(WHOLE, n.VALIDATION, data)
    mixes = n.fit_mixes(found[on] - found[off], validation[on] - validation[off])
    found = found.assign(**{f"{CHOSEN}+ema": found[on].where(mixes, found[off])})
    return n.interval(found[f"{method}+ema"] - found[f"{other}+ema"])


def table() -> str:
    """A row per pair of methods."""
    rows = [[title, *(lead(data, *row) for data in DATA)] for title, *row in ROWS]
    return n.markdown(["points over classes", *DATA], rows)

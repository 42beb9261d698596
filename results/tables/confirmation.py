"""NDCL-plus against BSoftmax and ERM on fresh seeds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import stats

from longshift.analysis.significance import holm
from results import numbers as n

WHERE: dict[str, Sequence[str]] = {
    "TotalHeavyTail and Duality": n.BOTH,
    **{setting: (setting,) for setting in n.SETTINGS},
}


def table() -> str:
    """Differences in points with 95 % intervals, t-tests with Holm's correction, frequent and rare classes."""
    rows = []
    for other in ("bsoftmax", "erm"):
        pair = (n.CONFIRM, "ndcl_plus"), (n.CONFIRM, other)
        found = [n.gaps(*pair, settings=settings) for settings in WHERE.values()]
        corrected = holm(np.array([stats.ttest_1samp(values, 0).pvalue for values in found]))
        for (title, settings), values, p in zip(WHERE.items(), found, corrected, strict=True):
            groups = [n.interval(n.gaps(*pair, measure, settings)) for measure in ("target_many", n.FEW)]
            tested = [n.interval(values), f"{p:.1g}", n.ahead(values)]
            rows.append([f"{n.pair_title('ndcl_plus', other)}: {title}", *tested, *groups])
    return n.markdown(["points", "all classes", "p (Holm)", "pairs ahead", "frequent classes", "rare classes"], rows)

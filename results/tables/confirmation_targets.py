"""NDCL-plus against BSoftmax on fresh seeds, target by target."""

from __future__ import annotations

from results import numbers as n


def table() -> str:
    """Mean difference over three trials in points."""
    rows = []
    for setting in n.SETTINGS:
        values = n.gaps((n.CONFIRM, "ndcl_plus"), (n.CONFIRM, "bsoftmax"), settings=(setting,))
        found = values.groupby("target").mean()
        rows.append([setting, *(n.text(value, sign=True) for value in found)])
    return n.markdown([f"{n.pair_title('ndcl_plus', 'bsoftmax')}, points", *found.index], rows)

"""README.md: five methods on each of the data."""

from __future__ import annotations

from longshift.report import method_title
from results import numbers as n

METHODS = ("erm", "ndcl", "bsoftmax", "ndcl_plus")
# Title, folder of the runs, setting. Add a line for each further benchmark and network.
ROWS = [(f"PACS, MobileNetV2, {setting}", n.CONFIRM, setting) for setting in n.SETTINGS]


def table() -> str:
    """Accuracy at the unseen domain, the gain over ERM, and what happens to rare classes."""
    rows = []
    for title, folder, setting in ROWS:
        few = [n.plain_mean(folder, name, setting, n.FEW) for name in ("erm", "ndcl_plus")]
        gained = n.gap(folder, "ndcl_plus", "erm", settings=(setting,))
        means = [n.plain_mean(folder, name, setting) for name in METHODS]
        rows.append([title, *means, gained, " → ".join(few), n.paper_mean("ndcl", setting)])
    heads = ["", *map(method_title, METHODS), "NDCL-plus - ERM", "rare classes", "NDCL, paper"]
    return n.markdown(heads, rows)

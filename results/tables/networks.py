"""A stronger network: six methods with EfficientNet-Lite4, beside the paper's NDCL."""

from __future__ import annotations

from longshift.report import method_title
from results import numbers as n

METHODS = ("erm", "ndcl", "coral", "reweight", "bsoftmax", "ndcl_plus")


def table() -> str:
    """Accuracy at the unseen domain, then differences in points with 95 % intervals."""
    rows = [[method_title(name), *(n.mean(n.EFFICIENT, name, setting) for setting in n.SETTINGS)] for name in METHODS]
    rows.append(["NDCL, paper (ResNet-50)", *(n.paper_mean("ndcl", setting) for setting in n.SETTINGS)])
    for other in ("bsoftmax", "erm"):
        gained = [n.gap(n.EFFICIENT, "ndcl_plus", other, settings=(setting,)) for setting in n.SETTINGS]
        rows.append([n.pair_title("ndcl_plus", other), *gained])
    return n.markdown(["EfficientNet-Lite4", *n.SETTINGS], rows)

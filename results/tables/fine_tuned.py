"""The 24 methods and NDCL-plus on PACS, fine-tuned, beside the paper."""

from __future__ import annotations

from longshift.report import method_title
from results import numbers as n


def table() -> str:
    """All methods by average rank."""
    place = n.average_ranks(n.cases(n.TUNED, ["ndcl_plus"])).sort_values()
    few = 100 * n.chosen(n.TUNED).groupby(["method", "setting"])[n.FEW].mean().groupby("method").mean()
    rows = []
    for name, rank in place.items():
        means = [cell for s in n.SETTINGS for cell in (n.mean(n.TUNED, str(name), s), n.paper_mean(str(name), s))]
        rows.append([method_title(str(name)), *means, n.text(few[str(name)]), n.text(rank)])
    heads = [cell for setting in n.SETTINGS for cell in (setting, "paper")]
    return n.markdown(["method", *heads, "rare classes", "rank"], rows)

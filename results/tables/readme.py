"""README.md: five methods with the paper's network on PACS and two collections of medical images."""

from __future__ import annotations

from longshift.report import method_title
from results import numbers as n
from results.tables import resnet50

METHODS = ("erm", "bsoftmax", "ndcl", "NDCL, released", "ndcl_plus")
TITLES = {"ndcl": "NDCL, as printed", "NDCL, released": "NDCL, as released"}


def table() -> str:
    """Averaged weights: PACS with its lead over ERM beside the paper's, then the real sites with their rare classes."""
    rows = []
    for name in METHODS:
        lead = resnet50.lead(name)
        sites = [
            f"{n.text(n.site_mean('natural-sites', data, f'{name}+ema', n.BALANCED))} "
            f"({n.text(n.site_mean('natural-sites', data, f'{name}+ema', n.FEW), digits=0)})"
            for data in ("HAM10000", "WBC")
        ]
        rows.append([TITLES.get(name, method_title(name)), n.text(resnet50.mean(name)), *lead, *sites])
    return n.markdown(["", "PACS", "gain over ERM", "gain in the paper", "HAM10000", "WBC"], rows)

"""README.md: some methods with the paper's network on PACS and two collections of medical images."""

from __future__ import annotations

from longshift.report import method_title
from results import numbers as n
from results.tables import resnet50

METHODS = ("erm", "bsoftmax", "ndcl", "NDCL, released", "ndcl_plus", n.UNSTYLED)
TITLES = {"ndcl": "NDCL, as printed", "NDCL, released": "NDCL, as released"}


def table() -> str:
    """Averaged weights: PACS with its lead over ERM beside the paper's, then the real sites with their rare classes."""
    rows = []
    for name in METHODS:
        known = name in n.methods(resnet50.FOLDER)
        pacs = [n.text(resnet50.mean(name)), *resnet50.lead(name)] if known else ["", "", ""]
        sites = [
            f"{n.text(n.site_mean('natural-sites', data, f'{name}+ema', n.BALANCED))} "
            f"({n.text(n.site_mean('natural-sites', data, f'{name}+ema', n.FEW), digits=0)})"
            for data in ("HAM10000", "WBC")
        ]
        rows.append([TITLES.get(name, method_title(name)), *pacs, *sites])
    return n.markdown(["", "PACS", "gain over ERM", "gain in the paper", "HAM10000", "WBC"], rows)

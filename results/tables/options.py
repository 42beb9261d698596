"""NDCL's options, one change at a time."""

from __future__ import annotations

from longshift.report import method_title
from results import numbers as n

CHANGES = (
    "domain prior", "domain prior, no con", "global prior", "no con", "no weight", "no const", "no aug",
    "equal weights in a class", "beta 1", "class means", "infonce", "supcon_nd", "released preset", "alpha 1",
)  # fmt: skip
ROWS = ("bsoftmax", n.UNSTYLED, *(f"NDCL, {change}" for change in CHANGES))


def table() -> str:
    """Points over NDCL with 95 % intervals, 12 pairs; validation decides, the target is shown."""
    rows = []
    for name in ROWS:
        cells = [n.gap(f"{n.TUNED}/study", name, "ndcl", measure) for measure in (n.VALIDATION, n.TARGET)]
        rows.append([method_title(name).removeprefix("NDCL, "), *cells])
    return n.markdown(["minus NDCL", "validation", "target"], rows)

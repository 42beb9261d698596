"""NDCL as printed and as its authors ran it, on the embedded features of PACS."""

from __future__ import annotations

from longshift.report import method_title
from results import numbers as n

FOLDER = f"{n.FROZEN}/ndcl-released"
CHANGES = (
    "lambda <= 1/2",
    "share as released",
    "global factors",
    "domain factors",
    "domain factors, lambda <= 1/2",
    "domain factors, share as released",
    "released preset without factors",
    "released preset with factors",
)


def table() -> str:
    """Target accuracy by setting, and points over NDCL as printed with 95 % intervals, 24 pairs."""
    rows = []
    for name in ("erm", "bsoftmax", "ndcl", *(f"NDCL, {change}" for change in CHANGES)):
        means = [n.mean(FOLDER, name, setting) for setting in n.BOTH]
        parts = (n.VALIDATION, n.TARGET)
        gaps = ["0", "0"] if name == "ndcl" else [n.gap(FOLDER, name, "ndcl", part) for part in parts]
        rows.append([method_title(name), *means, *gaps])
    return n.markdown(["", *n.BOTH, "validation, minus NDCL", "target, minus NDCL"], rows)

"""How often the intervals of `fit` and `predict` contain the accuracy at a new site, and how far off estimates are."""

from __future__ import annotations

from results.new_site import groups
from results.numbers import markdown


def table() -> str:
    """Coverage and width of both intervals, and mean absolute errors."""
    rows = []
    for data, sites, part in groups():
        shares = [part[f"{name}_{what}"].mean() for name in ("fit", "predict") for what in ("covers", "width")]
        errors = [(part[name] - part["truth"]).abs().mean() for name in ("mean", "atc", "estimate", "others")]
        cells = [f"{100 * share:.0f}" for share in shares] + [f"{100 * error:.1f}" for error in errors]
        rows.append([data, sites, str(len(part)), f"{100 * part['truth'].mean():.0f}", *cells])
    heads = ["data", "held-out sites", "cases", "true, %", "`fit`: covers, %", "width", "`predict`: covers, %", "width"]
    return markdown([*heads, "error: held-out mean", "ATC", "`predict`", "constants of other data"], rows)

"""The interval of `predict` by the warnings that apply."""

from __future__ import annotations

from benchmarks.label_free_constants import PARTS, warned
from longshift.inference.expected_accuracy import FEW
from results.new_site import cases
from results.numbers import markdown


def table() -> str:
    """Coverage without and with the wider interval, over all class frequencies; digits are the hardest data."""
    found = cases()
    _, far, dominated, few = (found[name] > 0 for name in PARTS)
    kinds = {
        "no warning": ~warned(found), "far": far, "far, digits": far & (found["data"] == "digits"),
        "one class dominates": dominated, f"fewer than {FEW} samples": few, "all": found["n"] > 0,
    }  # fmt: skip
    rows = []
    for kind, chosen in kinds.items():
        part = found[chosen]
        shares = [part[f"{name}_{what}"].mean() for name in ("held_out", "predict") for what in ("covers", "width")]
        error = (part["estimate"] - part["truth"]).abs().mean()
        rows.append([kind, str(len(part)), f"{100 * error:.1f}", *(f"{100 * share:.0f}" for share in shares)])
    heads = ["held-out errors alone: covers, %", "width", "`predict`: covers, %", "width"]
    return markdown(["warning", "cases", "error", *heads], rows)

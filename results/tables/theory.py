"""The theory's quantities against accuracy on the unseen domain."""

from __future__ import annotations

from results import numbers as n

QUANTITIES = {
    "target_margin": ("margin on the target", "+0.87"), "validation_margin": ("margin on validation", "-"),
    "posterior_target": ("posterior discrepancy, sources to target", "-0.89"),
    "posterior_sources": ("posterior discrepancy among sources", "-"),
}  # fmt: skip
SERIES = {"fine-tuned": n.TUNED, "frozen": n.FROZEN}


def table() -> str:
    """Pearson's r within cells and over the means of methods, which is what the paper prints."""
    rows = []
    for name, (title, published) in QUANTITIES.items():
        found = [n.correlations(folder)[name] for folder in SERIES.values()]
        cells = [n.text(part[points], digits=2, sign=True) for points in ("within", "means") for part in found]
        rows.append([title, *cells, published])
    heads = [f"{points}: {name}" for points in ("within cells", "method means") for name in SERIES]
    return n.markdown(["Pearson's r with accuracy", *heads, "paper (means)"], rows)

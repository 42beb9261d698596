"""How similar the orders of the 24 methods are."""

from __future__ import annotations

from itertools import combinations

from results import numbers as n


def table() -> str:
    """Spearman's correlation with the paper, between series and between targets."""
    rows = []
    for setting in n.SETTINGS:
        # Means of equal accuracies are ties, whatever their rounding errors.
        tuned, frozen = (n.cases(folder).loc[[setting]].round(9) for folder in (n.TUNED, n.FROZEN))
        ours, other = (part.mean().round(9) for part in (tuned, frozen))
        pairs = ((ours, n.published_means(setting)), (other, n.published_means(setting)), (ours, other))
        found = [one.corr(two, method="spearman") for one, two in pairs]
        between = [tuned.loc[a].corr(tuned.loc[b], method="spearman") for a, b in combinations(tuned.index, 2)]
        cells = [n.text(value, digits=2) for value in found]
        rows.append([setting, *cells, f"{min(between):.2f} to {max(between):.2f}"])
    heads = ["fine-tuned and paper", "frozen and paper", "fine-tuned and frozen", "between targets"]
    return n.markdown(["Spearman's correlation", *heads], rows)

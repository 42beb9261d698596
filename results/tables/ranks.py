"""Friedman's test and average ranks."""

from __future__ import annotations

from longshift.analysis import friedman, nemenyi_critical_difference
from longshift.report import method_title
from results import numbers as n

CASE, RUN = ("setting", "target"), ("setting", "target", "trial")
ROWS: tuple[tuple[str, str, list[str], tuple[str, ...]], ...] = (
    ("fine-tuned", n.TUNED, ["ndcl_plus"], CASE),
    ("fine-tuned, trials apart", n.TUNED, ["ndcl_plus"], RUN),
    ("frozen features", n.FROZEN, [], CASE),
)


def table() -> str:
    """The ranks that matter, with Nemenyi's critical difference at the 5 % level."""
    rows = []
    for title, folder, extra, index in ROWS:
        found = n.cases(folder, extra, index)
        place = n.average_ranks(found).sort_values()
        first = ", ".join(f"{method_title(name)} {place[name]:.1f}" for name in place.index[:3])
        difference = nemenyi_critical_difference(found.shape[1], found.shape[0])
        tested = [str(len(found)), f"{friedman(found).chi2_p:.0e}", n.text(difference)]
        rows.append([title, *tested, first, n.text(place["ndcl"]), n.text(place["erm"])])
    return n.markdown(["", "cases", "Friedman, p", "critical difference", "best three", "NDCL", "ERM"], rows)

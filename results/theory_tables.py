"""Tables of docs/results/theory.md: correlations with accuracy, order of the methods, tests."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy import stats

from longshift.analysis import friedman, nemenyi_critical_difference, wilcoxon_holm
from longshift.analysis.significance import holm
from longshift.report import method_title
from results import numbers as n

QUANTITIES = {
    "target_margin": "margin on the target", "validation_margin": "margin on validation",
    "posterior_target": "posterior discrepancy, sources to target",
    "posterior_sources": "posterior discrepancy among sources",
}  # fmt: skip
PUBLISHED = {"target_margin": "+0.87", "posterior_target": "-0.89"}  # 12 means on OfficeHome


def theory(folder: str) -> str:
    """Pearson's r with target accuracy."""
    rows = []
    for name, title in QUANTITIES.items():
        found = n.correlations(folder)[name]
        values = [n.text(found[points], digits=2, sign=True) for points in ("all", "within", "means")]
        rows.append([title, *values, PUBLISHED.get(name, "-")])
    return n.markdown(["quantity", "all runs", "within cells", "method means", "paper (method means)"], rows)


def orders() -> str:
    """Spearman's correlation of the order of the methods."""
    rows = []
    for setting in n.SETTINGS:
        ours, other = n.order(n.TUNED, setting), n.order(n.FROZEN, setting)
        targets = sorted(set(n.table(n.TUNED)["target"]))
        between = [
            n.order(n.TUNED, setting, a).corr(n.order(n.TUNED, setting, b), method="spearman")
            for a, b in combinations(targets, 2)
        ]
        values = [
            ours.corr(n.published_means(setting), method="spearman"),
            other.corr(n.published_means(setting), method="spearman"),
        ]
        values.append(ours.corr(other, method="spearman"))
        cells = [n.text(value, digits=2) for value in values]
        rows.append([setting, *cells, f"{min(between):.2f} to {max(between):.2f}"])
    header = ["", "fine-tuned and paper", "frozen and paper", "fine-tuned and frozen"]
    return n.markdown([*header, "between targets, fine-tuned"], rows)


def rank_tests() -> str:
    """Friedman's test and the average ranks that matter."""
    rows = []
    case, run = ("setting", "target"), ("setting", "target", "trial")
    for title, folder, extra, index in (
        ("fine-tuned", n.TUNED, [], case),
        ("fine-tuned, with NDCL-plus", n.TUNED, ["ndcl_plus"], case),
        ("fine-tuned, with NDCL-plus, trials apart", n.TUNED, ["ndcl_plus"], run),
        ("frozen features", n.FROZEN, [], case),
    ):
        found = n.cases(folder, extra, index)
        test = friedman(found)
        place = n.average_ranks(found).sort_values()
        first = ", ".join(f"{method_title(name)} {place[name]:.1f}" for name in place.index[:3])
        others = [f"{method_title(name)} {place[name]:.1f}" for name in ("ndcl", "erm")]
        difference = nemenyi_critical_difference(found.shape[1], found.shape[0])
        tested = [str(len(found)), f"{test.chi2:.1f}", f"{test.chi2_p:.0e}", f"{difference:.1f}"]
        rows.append([title, *tested, first, *others])
    return n.markdown(["", "cases", "chi2", "p", "critical difference", "best three", "NDCL", "ERM"], rows)


def control_tests() -> str:
    """NDCL-plus against each of the 24 methods: signed-rank tests and tests of average ranks, both with Holm.

    The test of average ranks against one control is that of Demsar (2006): a z-test with the standard error
    sqrt(k (k + 1) / (6 N)) of a difference of two average ranks of k methods over N cases.
    """
    scores = n.cases(n.TUNED, ["ndcl_plus"])
    count, k = scores.shape
    place = n.average_ranks(scores)
    others = list(place.sort_values().drop("ndcl_plus").index)
    z = (place[others] - place["ndcl_plus"]) / np.sqrt(k * (k + 1) / (6 * count))
    by_rank = dict(zip(others, holm(2 * stats.norm.sf(z.abs())), strict=True))
    signed = {test.worse if test.better == "ndcl_plus" else test.better: test.p_holm
              for test in wilcoxon_holm(scores, against="ndcl_plus")}  # fmt: skip
    rows = []
    for name in others:
        ahead = 100 * (scores["ndcl_plus"] - scores[name])
        tests = [f"{signed[name]:.2g}", f"{by_rank[name]:.2g}"]
        rows.append(
            [method_title(name), n.text(place[name]), n.text(ahead.mean(), sign=True), f"{(ahead > 0).sum()}", *tests]
        )
    header = ["NDCL-plus against", "rank", "points", f"cases ahead, of {count}"]
    return n.markdown([*header, "signed-rank test, Holm p", "rank test, Holm p"], rows)

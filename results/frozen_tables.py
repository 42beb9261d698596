"""Tables of docs/results/frozen.md: heads on frozen features."""

from __future__ import annotations

from scipy import stats

from longshift.report import method_title, order_methods
from results import numbers as n

STYLE = f"{n.FROZEN}/style"
VIEWS = ("one view", "augmented copies", "copies, half styled")
WITH_NATURAL = (*n.SETTINGS, "Natural")


def frozen() -> str:
    """All methods on frozen features, default hyper-parameters."""
    names = order_methods(n.methods(n.FROZEN))
    rows = [[method_title(name), *n.pairs_of_means(n.FROZEN, name, n.SETTINGS)] for name in names]
    return n.markdown(["method", *n.with_few(n.SETTINGS)], n.bold_best(rows, range(1, 7)))


def frozen_average() -> str:
    """Averaged weights of the same runs."""
    names = [f"{name}{end}" for name in ("erm", "bsoftmax", "ndcl", n.UNSTYLED) for end in ("", "+ema")]
    rows = [[method_title(name), *n.pairs_of_means(n.FROZEN, name, n.SETTINGS)] for name in names]
    return n.markdown(["method", *n.with_few(n.SETTINGS)], rows)


def frozen_pairs(draws: int) -> str:
    """Paired differences on frozen features, with or without a search of hyper-parameters."""
    pairs = [("ndcl", "erm"), ("bsoftmax", "erm"), ("ndcl", "bsoftmax"), (n.UNSTYLED, "bsoftmax")]
    rows = [
        [
            n.pair_title(*pair),
            *(n.gap(n.FROZEN, *pair, measure, (s,), draws) for s in n.SETTINGS for measure in n.ACCURACY),
        ]
        for pair in pairs
    ]
    return n.markdown(["points", *n.with_few(n.SETTINGS)], rows)


def searched() -> str:
    """Hyper-parameters searched, and the change from the defaults."""
    found, before = (
        n.chosen(n.FROZEN, draws).groupby(["method", "setting"])["target_accuracy"].mean() for draws in (3, 1)
    )
    rows = []
    for name in order_methods(n.methods(n.FROZEN)):
        cells = [method_title(name)]
        for setting in n.SETTINGS:
            change = 100 * (found[name, setting] - before[name, setting])
            cells += [n.mean(n.FROZEN, name, setting, "target_accuracy", 3), n.text(change, sign=True)]
        rows.append(cells)
    header = [cell for setting in n.SETTINGS for cell in (setting, "change")]
    return n.markdown(["method", *header], n.bold_best(rows, (1, 3, 5)))


def frozen_style() -> str:
    """Heads on images and on copies: validation accuracy, which chooses, and target accuracy on fresh seeds."""
    found = n.table(STYLE).groupby("method")["validation_accuracy"].agg(["mean", "size"])
    rows = [
        [name, n.text(100 * found["mean"][name], digits=2)]
        + [n.mean(f"{STYLE}/confirm", name, setting, "target_accuracy") for setting in WITH_NATURAL]
        for name in VIEWS
    ]
    return n.markdown(["a head is trained on", f"validation, {found['size'].max()} runs", *WITH_NATURAL], rows)


def frozen_style_pairs() -> str:
    """Differences between the candidates on fresh seeds."""
    rows = []
    for one, other in ((VIEWS[1], VIEWS[0]), (VIEWS[2], VIEWS[0]), (VIEWS[2], VIEWS[1])):
        both = n.gaps(f"{STYLE}/confirm", one, other, "target_accuracy", WITH_NATURAL)
        tests = [f"{test:.1g}" for test in (stats.ttest_1samp(both, 0).pvalue, stats.wilcoxon(both).pvalue)]
        parts = [n.gap(f"{STYLE}/confirm", one, other, "target_accuracy", (setting,)) for setting in WITH_NATURAL]
        few = n.gap(f"{STYLE}/confirm", one, other, "target_few", n.SETTINGS)
        rows.append([f"{one} - {other}", n.spread(both), *tests, *parts, few])
    header = ["points", "all 48 pairs", "t-test, p", "Wilcoxon, p", *WITH_NATURAL, "few-shot classes"]
    return n.markdown(header, rows)

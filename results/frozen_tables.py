"""Tables of docs/results/frozen.md: heads on frozen features."""

from __future__ import annotations

from collections.abc import Callable

from scipy import stats

from longshift.report import method_title, order_methods
from results.numbers import (
    ACCURACY,
    FROZEN,
    SETTINGS,
    UNSTYLED,
    bold_best,
    chosen,
    gap,
    gaps,
    markdown,
    mean,
    methods,
    pair_title,
    pairs_of_means,
    spread,
    table,
    text,
    with_few,
)

STYLE = f"{FROZEN}/style"
VIEWS = ("one view", "augmented copies", "copies, half styled")
WITH_NATURAL = (*SETTINGS, "Natural")


def frozen() -> str:
    """All methods on frozen features, default hyper-parameters."""
    names = order_methods(methods(FROZEN))
    rows = [[method_title(name), *pairs_of_means(FROZEN, name, SETTINGS)] for name in names]
    return markdown(["method", *with_few(SETTINGS)], bold_best(rows, range(1, 7)))


def frozen_average() -> str:
    """Averaged weights of the same runs."""
    names = [f"{name}{end}" for name in ("erm", "bsoftmax", "ndcl", UNSTYLED) for end in ("", "+ema")]
    rows = [[method_title(name), *pairs_of_means(FROZEN, name, SETTINGS)] for name in names]
    return markdown(["method", *with_few(SETTINGS)], rows)


def frozen_pairs(draws: int) -> Callable[[], str]:
    """Paired differences on frozen features, with or without a search of hyper-parameters."""

    def build() -> str:
        pairs = [("ndcl", "erm"), ("bsoftmax", "erm"), ("ndcl", "bsoftmax"), (UNSTYLED, "bsoftmax")]
        rows = [
            [pair_title(*pair), *(gap(FROZEN, *pair, measure, (s,), draws) for s in SETTINGS for measure in ACCURACY)]
            for pair in pairs
        ]
        return markdown(["points", *with_few(SETTINGS)], rows)

    return build


def searched() -> str:
    """Hyper-parameters searched, and the change from the defaults."""
    found, before = (chosen(FROZEN, draws).groupby(["method", "setting"])["target_accuracy"].mean() for draws in (3, 1))
    rows = []
    for name in order_methods(methods(FROZEN)):
        cells = [method_title(name)]
        for setting in SETTINGS:
            change = 100 * (found[name, setting] - before[name, setting])
            cells += [mean(FROZEN, name, setting, "target_accuracy", 3), text(change, sign=True)]
        rows.append(cells)
    header = [cell for setting in SETTINGS for cell in (setting, "change")]
    return markdown(["method", *header], bold_best(rows, (1, 3, 5)))


def frozen_style() -> str:
    """Heads on images and on copies: validation accuracy, which chooses, and target accuracy on fresh seeds."""
    found = table(STYLE).groupby("method")["validation_accuracy"].agg(["mean", "size"])
    rows = [
        [name, text(100 * found["mean"][name], digits=2)]
        + [mean(f"{STYLE}/confirm", name, setting, "target_accuracy") for setting in WITH_NATURAL]
        for name in VIEWS
    ]
    return markdown(["a head is trained on", f"validation, {found['size'].max()} runs", *WITH_NATURAL], rows)


def frozen_style_pairs() -> str:
    """Differences between the candidates on fresh seeds."""
    rows = []
    for one, other in ((VIEWS[1], VIEWS[0]), (VIEWS[2], VIEWS[0]), (VIEWS[2], VIEWS[1])):
        both = gaps(f"{STYLE}/confirm", one, other, "target_accuracy", WITH_NATURAL)
        tests = [f"{test:.1g}" for test in (stats.ttest_1samp(both, 0).pvalue, stats.wilcoxon(both).pvalue)]
        parts = [gap(f"{STYLE}/confirm", one, other, "target_accuracy", (setting,)) for setting in WITH_NATURAL]
        few = gap(f"{STYLE}/confirm", one, other, "target_few", SETTINGS)
        rows.append([f"{one} - {other}", spread(both), *tests, *parts, few])
    header = ["points", "all 48 pairs", "t-test, p", "Wilcoxon, p", *WITH_NATURAL, "few-shot classes"]
    return markdown(header, rows)

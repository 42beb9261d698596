"""Tables of docs/results/fine-tuned.md: networks trained as a whole, and the paper's numbers next to them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pandas as pd
from scipy import stats

from longshift.report import method_title, order_methods
from results import numbers as n


def fine_tuned() -> str:
    """All methods by rank; then rows that the paper does not have."""
    place = n.ranks(n.TUNED, ["ndcl_plus"])
    extra = [name for name in order_methods(n.methods(n.TUNED)) if name not in place.index]
    rows = []
    for name in [*place.sort_values().index, *extra]:
        cells = [method_title(name)]
        for setting in n.SETTINGS:
            cells += [*n.pairs_of_means(n.TUNED, name, (setting,)), n.paper_mean(name, setting)]
        rows.append([*cells, n.text(place[name]) if name in place.index else "-"])
    header = [cell for setting in n.SETTINGS for cell in (setting, "few", "paper")]
    return n.markdown(["method", *header, "rank"], n.bold_best(rows, (1, 2, 4, 5, 7, 8)))


def two_series() -> str:
    """Differences in both series of fine-tuned runs: seeds 0 to 2 on original images, 3 to 5 on re-encoded ones."""
    rows = []
    for one, other in (("ndcl", "erm"), ("ndcl_plus", "erm"), ("ndcl_plus", "ndcl"), ("ndcl_plus", "bsoftmax")):
        for setting in n.SETTINGS:
            found = [n.gaps(folder, one, other, "target_accuracy", (setting,)) for folder in (n.TUNED, n.CONFIRM)]
            joined = pd.concat(found)
            p = f"{stats.ttest_1samp(joined, 0).pvalue:.1g}"
            rows.append([f"{n.pair_title(one, other)}: {setting}", *map(n.spread, [*found, joined]), p])
    return n.markdown(["points on the target", "seeds 0 to 2", "seeds 3 to 5", "all 24 pairs", "t-test, p"], rows)


def fine_tuned_pairs() -> str:
    """Paired differences with three trials."""
    single = [("ndcl", "erm"), (n.UNSTYLED, "ndcl"), (n.UNSTYLED, "bsoftmax")]
    single += [("ndcl_plus", other) for other in ("bsoftmax", "erm")]
    rows: list[tuple[str, str, Sequence[str]]] = [(*pair, (setting,)) for pair in single for setting in n.SETTINGS]
    rows += [(n.UNSTYLED, name, n.BOTH) for name in ("bsoftmax", n.NO_CON, "erm")]
    for one, other in (("ndcl", "bsoftmax"), ("bsoftmax", "erm")):
        rows += [(one, other, n.BOTH), (one, other, (n.GINIDG,))]
    rows += [(name, "erm", n.BOTH) for name in ("reweight", "groupdro", "coral", "sagnet")]
    return _pair_table(n.TUNED, rows)


def _pair_table(folder: str, rows: Iterable[tuple[str, str, Sequence[str]]]) -> str:
    lines = []
    for one, other, settings in rows:
        count = len(n.gaps(folder, one, other, "target_accuracy", settings))
        where = settings[0] if len(settings) == 1 else "both"
        cells = [n.gap(folder, one, other, measure, settings) for measure in n.SELECTING]
        lines.append([f"{n.pair_title(one, other)}: {where}", str(count), *cells])
    return n.markdown(["points", "n", "validation", "target", "few"], lines)


def shots() -> str:
    """Frequent, medium and few-shot classes under TotalHeavyTail."""
    names = ("erm", "ndcl", "bsoftmax", n.NO_CON, n.UNSTYLED)
    groups = ("target_many", "target_medium", "target_few")
    rows = [[method_title(name), *(n.mean(n.TUNED, name, n.TAIL, group) for group in groups)] for name in names]
    return n.markdown(["TotalHeavyTail", "many", "medium", "few"], rows)


def lengths(folder: str) -> str:
    """Validation accuracy during training, and the gain of the last third."""
    rows, steps = [], [0]
    for setting in n.SETTINGS:
        found = n.curves(folder, setting)
        if len(found):
            last = max(int(step) for step in found.columns)
            steps = [last // 3, 2 * last // 3, last]
            values = [n.text(found[step].mean()) for step in steps]
            rows.append([setting, str(len(found)), *values, n.spread(found[steps[2]] - found[steps[1]], 2)])
    return n.markdown(["", "runs", *(f"step {step}" for step in steps), "gain of the last third"], rows)


def long_runs() -> str:
    """1,800 steps: validation accuracy during training."""
    folder = f"{n.TUNED}/long"
    steps = list(n.curves(folder, n.TAIL))
    rows = [[setting, *(n.text(n.curves(folder, setting)[step].mean()) for step in steps)] for setting in n.BOTH]
    return n.markdown(["", *(f"{step:,}" for step in steps)], rows)


def long_methods() -> str:
    """1,800 steps: each method, and the same runs stopped at 600."""
    folder = f"{n.TUNED}/long"
    rows = []
    for method in order_methods(n.methods(folder)):
        for setting in n.BOTH:
            found = n.curves(folder, setting, method).mean()
            row = [f"{method_title(method)}: {setting}", *(n.text(found[step]) for step in (600, 1200, 1800))]
            measures = ("target_accuracy", "last_target_accuracy")
            frame = n.table(folder)
            part = frame[(frame["setting"] == setting) & (frame["method"] == method)]
            rows.append([*row, *(n.text(100 * part[measure].mean()) for measure in measures), _short(method, setting)])
    header = ["", "validation at 600", "at 1,200", "at 1,800", "target, selected step", "target at 1,800"]
    return n.markdown([*header, "target, runs of 600 steps"], rows)


def _short(method: str, setting: str) -> str:
    """The runs of the comparison with the same seeds."""
    keys = ["setting", "target", "trial", "method"]
    both = n.table(f"{n.TUNED}/long").merge(n.table(n.TUNED), on=keys, suffixes=("", "_short"))
    part = both[(both["setting"] == setting) & (both["method"] == method)]
    return n.text(100 * part["target_accuracy_short"].mean())


def large_images() -> str:
    """Five methods at 224 px, with averaged weights."""
    names = order_methods(n.table(n.LARGE)["method"])
    rows = [[method_title(name), *n.pairs_of_means(n.LARGE, name, n.BOTH)] for name in names]
    return n.markdown(["", n.TAIL, "few", n.DUALITY, "few"], n.bold_best(rows, range(1, 5)))


def large_pairs() -> str:
    """Paired differences at 224 px."""
    pairs = [("ndcl", "erm"), ("bsoftmax", "erm"), ("ndcl", "bsoftmax"), (n.NO_CON, "bsoftmax")]
    pairs += [(n.UNSTYLED, "bsoftmax"), (n.NO_CON, "ndcl"), (n.UNSTYLED, "ndcl")]
    return _pair_table(n.LARGE, [(*pair, settings) for pair in pairs for settings in ((n.TAIL,), (n.DUALITY,), n.BOTH)])


def paper() -> str:
    """ERM, BSoftmax, NDCL and the lead of NDCL, with the published numbers."""
    rows = []
    for setting in n.SETTINGS:
        for method in ("erm", "bsoftmax", "ndcl", n.UNSTYLED):
            ours = [_mean_or_blank(folder, method, setting) for folder in n.SERIES.values()]
            rows.append([f"{method_title(method)}: {setting}", n.paper_mean(method, setting), *ours])
    for setting in n.SETTINGS:
        lead = float(n.paper_mean("ndcl", setting)) - float(n.paper_mean("erm", setting))
        ours = [n.gap_to_erm(folder, "ndcl", setting) for folder in n.SERIES.values()]
        rows.append([f"NDCL - ERM: {setting}", n.text(lead, sign=True), *ours])
    return n.markdown(["", "paper", *n.SERIES], rows)


def _mean_or_blank(folder: str, method: str, setting: str) -> str:
    there = n.chosen(folder)
    known = ((there["setting"] == setting) & (there["method"] == method)).any()
    return n.plain_mean(folder, method, setting, "target_accuracy") if known else "not run"

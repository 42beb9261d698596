"""Tables of docs/results/fine-tuned.md: networks trained as a whole, and the paper's numbers next to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import pandas as pd
from scipy import stats

from longshift.report import method_title, order_methods
from results.numbers import (
    BOTH,
    CONFIRM,
    DUALITY,
    GINIDG,
    LARGE,
    NO_CON,
    SELECTING,
    SERIES,
    SETTINGS,
    TAIL,
    TUNED,
    UNSTYLED,
    bold_best,
    chosen,
    curves,
    gap,
    gap_to_erm,
    gaps,
    markdown,
    mean,
    methods,
    pair_title,
    pairs_of_means,
    paper_mean,
    plain_mean,
    ranks,
    spread,
    table,
    text,
)


def fine_tuned() -> str:
    """All methods by rank; then rows that the paper does not have."""
    place = ranks(TUNED, ["ndcl_plus"])
    extra = [name for name in order_methods(methods(TUNED)) if name not in place.index]
    rows = []
    for name in [*place.sort_values().index, *extra]:
        cells = [method_title(name)]
        for setting in SETTINGS:
            cells += [*pairs_of_means(TUNED, name, (setting,)), paper_mean(name, setting)]
        rows.append([*cells, text(place[name]) if name in place.index else "-"])
    header = [cell for setting in SETTINGS for cell in (setting, "few", "paper")]
    return markdown(["method", *header, "rank"], bold_best(rows, (1, 2, 4, 5, 7, 8)))


def two_series() -> str:
    """Differences in both series of fine-tuned runs: seeds 0 to 2 on original images, 3 to 5 on re-encoded ones."""
    rows = []
    for one, other in (("ndcl", "erm"), ("ndcl_plus", "erm"), ("ndcl_plus", "ndcl"), ("ndcl_plus", "bsoftmax")):
        for setting in SETTINGS:
            found = [gaps(folder, one, other, "target_accuracy", (setting,)) for folder in (TUNED, CONFIRM)]
            joined = pd.concat(found)
            p = f"{stats.ttest_1samp(joined, 0).pvalue:.1g}"
            rows.append([f"{pair_title(one, other)}: {setting}", *map(spread, [*found, joined]), p])
    return markdown(["points on the target", "seeds 0 to 2", "seeds 3 to 5", "all 24 pairs", "t-test, p"], rows)


def fine_tuned_pairs() -> str:
    """Paired differences with three trials."""
    single = [("ndcl", "erm"), (UNSTYLED, "ndcl"), (UNSTYLED, "bsoftmax")]
    single += [("ndcl_plus", other) for other in ("bsoftmax", "erm")]
    rows: list[tuple[str, str, Sequence[str]]] = [(*pair, (setting,)) for pair in single for setting in SETTINGS]
    rows += [(UNSTYLED, name, BOTH) for name in ("bsoftmax", NO_CON, "erm")]
    for one, other in (("ndcl", "bsoftmax"), ("bsoftmax", "erm")):
        rows += [(one, other, BOTH), (one, other, (GINIDG,))]
    rows += [(name, "erm", BOTH) for name in ("reweight", "groupdro", "coral", "sagnet")]
    return _pair_table(TUNED, rows)


def _pair_table(folder: str, rows: Iterable[tuple[str, str, Sequence[str]]]) -> str:
    lines = []
    for one, other, settings in rows:
        count = len(gaps(folder, one, other, "target_accuracy", settings))
        where = settings[0] if len(settings) == 1 else "both"
        cells = [gap(folder, one, other, measure, settings) for measure in SELECTING]
        lines.append([f"{pair_title(one, other)}: {where}", str(count), *cells])
    return markdown(["points", "n", "validation", "target", "few"], lines)


def shots() -> str:
    """Frequent, medium and few-shot classes under TotalHeavyTail."""
    names = ("erm", "ndcl", "bsoftmax", NO_CON, UNSTYLED)
    groups = ("target_many", "target_medium", "target_few")
    rows = [[method_title(name), *(mean(TUNED, name, TAIL, group) for group in groups)] for name in names]
    return markdown(["TotalHeavyTail", "many", "medium", "few"], rows)


def lengths(folder: str) -> Callable[[], str]:
    """Validation accuracy during training, and the gain of the last third."""

    def build() -> str:
        rows, steps = [], [0]
        for setting in SETTINGS:
            found = curves(folder, setting)
            if len(found):
                last = max(int(step) for step in found.columns)
                steps = [last // 3, 2 * last // 3, last]
                values = [text(found[step].mean()) for step in steps]
                rows.append([setting, str(len(found)), *values, spread(found[steps[2]] - found[steps[1]], 2)])
        return markdown(["", "runs", *(f"step {step}" for step in steps), "gain of the last third"], rows)

    return build


def long_runs() -> str:
    """1,800 steps: validation accuracy during training."""
    folder = f"{TUNED}/long"
    steps = list(curves(folder, TAIL))
    rows = [[setting, *(text(curves(folder, setting)[step].mean()) for step in steps)] for setting in BOTH]
    return markdown(["", *(f"{step:,}" for step in steps)], rows)


def long_methods() -> str:
    """1,800 steps: each method, and the same runs stopped at 600."""
    folder = f"{TUNED}/long"
    rows = []
    for method in order_methods(methods(folder)):
        for setting in BOTH:
            found = curves(folder, setting, method).mean()
            row = [f"{method_title(method)}: {setting}", *(text(found[step]) for step in (600, 1200, 1800))]
            measures = ("target_accuracy", "last_target_accuracy")
            frame = table(folder)
            part = frame[(frame["setting"] == setting) & (frame["method"] == method)]
            rows.append([*row, *(text(100 * part[measure].mean()) for measure in measures), _short(method, setting)])
    header = ["", "validation at 600", "at 1,200", "at 1,800", "target, selected step", "target at 1,800"]
    return markdown([*header, "target, runs of 600 steps"], rows)


def _short(method: str, setting: str) -> str:
    """The runs of the comparison with the same seeds."""
    keys = ["setting", "target", "trial", "method"]
    both = table(f"{TUNED}/long").merge(table(TUNED), on=keys, suffixes=("", "_short"))
    part = both[(both["setting"] == setting) & (both["method"] == method)]
    return text(100 * part["target_accuracy_short"].mean())


def large_images() -> str:
    """Five methods at 224 px, with averaged weights."""
    names = order_methods(table(LARGE)["method"])
    rows = [[method_title(name), *pairs_of_means(LARGE, name, BOTH)] for name in names]
    return markdown(["", TAIL, "few", DUALITY, "few"], bold_best(rows, range(1, 5)))


def large_pairs() -> str:
    """Paired differences at 224 px."""
    pairs = [("ndcl", "erm"), ("bsoftmax", "erm"), ("ndcl", "bsoftmax"), (NO_CON, "bsoftmax")]
    pairs += [(UNSTYLED, "bsoftmax"), (NO_CON, "ndcl"), (UNSTYLED, "ndcl")]
    return _pair_table(LARGE, [(*pair, settings) for pair in pairs for settings in ((TAIL,), (DUALITY,), BOTH)])


def paper() -> str:
    """ERM, BSoftmax, NDCL and the lead of NDCL, with the published numbers."""
    rows = []
    for setting in SETTINGS:
        for method in ("erm", "bsoftmax", "ndcl", UNSTYLED):
            ours = [_mean_or_blank(folder, method, setting) for folder in SERIES.values()]
            rows.append([f"{method_title(method)}: {setting}", paper_mean(method, setting), *ours])
    for setting in SETTINGS:
        lead = float(paper_mean("ndcl", setting)) - float(paper_mean("erm", setting))
        ours = [gap_to_erm(folder, "ndcl", setting) for folder in SERIES.values()]
        rows.append([f"NDCL - ERM: {setting}", text(lead, sign=True), *ours])
    return markdown(["", "paper", *SERIES], rows)


def _mean_or_blank(folder: str, method: str, setting: str) -> str:
    there = chosen(folder)
    known = ((there["setting"] == setting) & (there["method"] == method)).any()
    return plain_mean(folder, method, setting, "target_accuracy") if known else "not run"

"""Write the methods page and the tables in README.md, docs/ and results/ from the published runs.

    python -m results.docs_tables          # rewrite every table between its markers, and the methods page
    python -m results.docs_tables --check  # name pages with stale tables; exit code 1 if there are any

A page marks a table with `<!-- table: NAME -->` and `<!-- end -->`. To add a table, write a function that returns
Markdown, add it to `TABLES`, put the two markers on a page, and run the command (or `make tables`).
"""

from __future__ import annotations

import csv
import functools
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from pathlib import Path

import pandas as pd
from benchmarks.fault_rows import FAULT_ROWS
from results.methods_page import PAGE, methods_page
from results.numbers import (
    ACCURACY,
    BOTH,
    CHOICE,
    CONFIRM,
    DUALITY,
    EFFICIENT,
    FINALISTS,
    FROZEN,
    GINIDG,
    LARGE,
    OTHERS,
    RESULTS,
    SELECTING,
    SETTINGS,
    TAIL,
    TUNED,
    UNSTYLED,
    bold_best,
    cases,
    chosen,
    correlations,
    curves,
    gap,
    gaps,
    gaps_between,
    markdown,
    mean,
    methods,
    order,
    pair_title,
    plain_mean,
    ranks,
    spread,
    table,
    text,
)
from scipy import stats

from longshift.analysis import friedman, nemenyi_critical_difference
from longshift.paper import overall_results
from longshift.report import method_title, order_methods
from longshift.results import run_columns
from longshift.toml import read_toml
from results import new_site

ROOT = RESULTS.parent
SERIES = {"600 steps, 160 px": TUNED, "300 steps, 224 px": LARGE, "frozen features": FROZEN}
NO_CON = "NDCL, domain prior, no con"
FEW = "few-shot classes"
CONFIRMED = ("erm", "ndcl", "bsoftmax", "ndcl_plus")
PHOTO, DIGITS = "no-style-difference/photo", "no-style-difference/digits"


def columns() -> str:
    """The schema of the table of runs; columns that repeat others at another step are one row."""
    rows = [
        [f"`{column.name}`", column.type, column.meaning, "yes" if column.machine else "", column.since]
        for column in run_columns()
        if not column.name.startswith(("last_", "oracle_target_"))
    ]
    rows.append(["`last_...`", "number", "the measures from `validation_accuracy` on, at the last step", "", "0.1"])
    rows.append(["`oracle_target_...`", "number", "the measures of the target, at the oracle step", "", "0.1"])
    return markdown(["column", "type", "meaning", "machine", "since"], rows)


def readme() -> str:
    """Four methods on seeds that no choice has seen."""
    names = {
        "erm": "ERM",
        "ndcl": "NDCL, as published",
        "bsoftmax": "BSoftmax, counts per domain",
        "ndcl_plus": "[NDCL-plus](docs/explanation/ndcl-plus.md), our method",
    }
    rows = [[title, *_pairs_of_means(CONFIRM, name, SETTINGS)] for name, title in names.items()]
    for other in ("bsoftmax", "erm"):
        gained = [gap(CONFIRM, "ndcl_plus", other, m, (setting,)) for setting in SETTINGS for m in ACCURACY]
        rows.append([pair_title("ndcl_plus", other), *gained])
    return markdown(["", *_with_few(SETTINGS)], rows)


def over_erm() -> str:
    """Points over ERM in three series of runs."""
    rows = [
        [f"{method_title(method)}: {setting}", *(_over_erm(folder, method, setting) for folder in SERIES.values())]
        for method in ("ndcl", "bsoftmax", UNSTYLED)
        for setting in SETTINGS
    ]
    return markdown(["points over ERM", *SERIES], rows)


def _over_erm(folder: str, method: str, setting: str) -> str:
    found = gaps(folder, method, "erm", "target_accuracy", (setting,))
    return spread(found) if len(found) else "not run"


def runs() -> str:
    """What was run, where it is and what made it."""
    rows = []
    for file in sorted(RESULTS.rglob("runs.parquet")):
        folder = file.parent.relative_to(RESULTS).as_posix()
        frame = table(folder)
        own = frame[~frame["method"].str.contains("+", regex=False)]
        rows.append([
            f"[{folder}](../../results/{folder})", f"{own['fingerprint'].nunique():,}", str(own["method"].nunique()),
            ", ".join(name for name in SETTINGS if name in set(own["setting"])), str(own["target"].nunique()),
            str(own["trial"].nunique()), ", ".join(f"{steps:,}" for steps in sorted(set(own["steps"]))),
            ", ".join(sorted(set(own["commit"]))), ", ".join(sorted(set(own["device"]))),
        ])  # fmt: skip
    return markdown(["folder", "runs", "rows", "settings", "targets", "trials", "steps", "commits", "device"], rows)


def fine_tuned() -> str:
    """All methods by rank; then rows that the paper does not have."""
    place = ranks(TUNED, ["ndcl_plus"])
    extra = [name for name in order_methods(methods(TUNED)) if name not in place.index]
    rows = []
    for name in [*place.sort_values().index, *extra]:
        cells = [method_title(name)]
        for setting in SETTINGS:
            cells += [*_pairs_of_means(TUNED, name, (setting,)), _paper(name, setting)]
        rows.append([*cells, text(place[name]) if name in place.index else "-"])
    header = [cell for setting in SETTINGS for cell in (setting, "few", "paper")]
    return markdown(["method", *header, "rank"], bold_best(rows, (1, 2, 4, 5, 7, 8)))


def _paper(method: str, setting: str) -> str:
    values = _published(setting)
    return text(values[method]) if method in values.index else "-"


@functools.cache
def _published(setting: str) -> pd.Series[float]:
    """The paper's averages on PACS by method."""
    found = overall_results()
    part = found[(found["dataset"] == "PACS") & (found["setting"] == setting) & (found["group"] == "average")]
    return part.set_index("method")["mean"]


def _pairs_of_means(folder: str, method: str, settings: Iterable[str], draws: int = 1) -> list[str]:
    return [mean(folder, method, setting, measure, draws) for setting in settings for measure in ACCURACY]


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
    rows = [[method_title(name), *_pairs_of_means(LARGE, name, BOTH)] for name in names]
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
            rows.append([f"{method_title(method)}: {setting}", _paper(method, setting), *ours])
    for setting in SETTINGS:
        lead = float(_paper("ndcl", setting)) - float(_paper("erm", setting))
        ours = [_over_erm(folder, "ndcl", setting) for folder in SERIES.values()]
        rows.append([f"NDCL - ERM: {setting}", text(lead, sign=True), *ours])
    return markdown(["", "paper", *SERIES], rows)


def _mean_or_blank(folder: str, method: str, setting: str) -> str:
    there = chosen(folder)
    known = ((there["setting"] == setting) & (there["method"] == method)).any()
    return plain_mean(folder, method, setting, "target_accuracy") if known else "not run"


def frozen() -> str:
    """All methods on frozen features, default hyper-parameters."""
    names = order_methods(methods(FROZEN))
    rows = [[method_title(name), *_pairs_of_means(FROZEN, name, SETTINGS)] for name in names]
    return markdown(["method", *_with_few(SETTINGS)], bold_best(rows, range(1, 7)))


def _with_few(settings: Iterable[str]) -> list[str]:
    return [cell for setting in settings for cell in (setting, "few")]


def frozen_average() -> str:
    """Averaged weights of the same runs."""
    names = [f"{name}{end}" for name in ("erm", "bsoftmax", "ndcl", UNSTYLED) for end in ("", "+ema")]
    rows = [[method_title(name), *_pairs_of_means(FROZEN, name, SETTINGS)] for name in names]
    return markdown(["method", *_with_few(SETTINGS)], rows)


def frozen_pairs(draws: int) -> Callable[[], str]:
    """Paired differences on frozen features, with or without a search of hyper-parameters."""

    def build() -> str:
        pairs = [("ndcl", "erm"), ("bsoftmax", "erm"), ("ndcl", "bsoftmax"), (UNSTYLED, "bsoftmax")]
        rows = [
            [pair_title(*pair), *(gap(FROZEN, *pair, measure, (s,), draws) for s in SETTINGS for measure in ACCURACY)]
            for pair in pairs
        ]
        return markdown(["points", *_with_few(SETTINGS)], rows)

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


def variants(folder: str) -> Callable[[], str]:
    """NDCL's options, minus NDCL as published, by the gain on validation."""

    def build() -> str:
        names = [name for name in methods(folder) if name != "ndcl"]
        names.sort(key=lambda name: -gaps(folder, name, "ndcl", "validation_accuracy").mean())
        rows = []
        for name in names:
            title = method_title(name)
            title = title.removeprefix("NDCL, ") if title.startswith("NDCL, ") else f"**{title}**"
            count = len(gaps(folder, name, "ndcl", "target_accuracy"))
            rows.append([title, str(count), *(gap(folder, name, "ndcl", measure) for measure in SELECTING)])
        return markdown(["minus NDCL as published", "n", "validation", "target", "few"], rows)

    return build


def variants_by_setting(folder: str) -> Callable[[], str]:
    """The gain on validation, setting by setting."""

    def build() -> str:
        names = [name for name in methods(folder) if name.startswith("NDCL, ")]
        names.sort(key=lambda name: -gaps(folder, name, "ndcl", "validation_accuracy").mean())
        rows = [
            [name.removeprefix("NDCL, "), *(gap(folder, name, "ndcl", "validation_accuracy", (s,)) for s in BOTH)]
            for name in names
        ]
        return markdown(["validation, minus NDCL as published", *BOTH], rows)

    return build


def frozen_changes() -> str:
    """Selected pairs of variants on frozen features."""
    folder = f"{FROZEN}/study"
    pairs = [("ndcl", "erm"), ("NDCL, no con", "ndcl"), ("NDCL, no weight", "ndcl")]
    pairs += [("NDCL, equal weights in a class", "ndcl"), ("NDCL, no const", "ndcl"), ("NDCL, no aug", "ndcl")]
    pairs += [("NDCL, domain prior", "ndcl"), (NO_CON, "bsoftmax"), (UNSTYLED, "bsoftmax")]
    rows = [[pair_title(*pair), *(gap(folder, *pair, m, digits=2) for m in SELECTING)] for pair in pairs]
    return markdown(["points, n = 12", "validation", "target", "few"], rows)


def candidates() -> str:
    """The variants nearest to BSoftmax on all four targets."""
    folder = f"{FROZEN}/candidates"
    names = [name for name in order_methods(methods(folder)) if name != "bsoftmax"]
    rows = [[method_title(name), *(gap(folder, name, "bsoftmax", measure) for measure in SELECTING)] for name in names]
    return markdown(["minus BSoftmax, n = 24", "validation", "target", "few"], rows)


FOUR = ("validation_accuracy", "target_accuracy", "target_many", "target_few")


def two_changes() -> str:
    """Two changes to NDCL with twenty trials."""
    folder = f"{FROZEN}/defaults"
    names = [name for name in methods(folder) if name != "ndcl"]
    rows = []
    for name in names:
        for settings in ((TAIL,), (DUALITY,), BOTH):
            where = settings[0] if len(settings) == 1 else "both"
            cells = [gap(folder, name, "ndcl", measure, settings, digits=2) for measure in FOUR]
            rows.append([f"{name.removeprefix('NDCL, ')}: {where}", *cells])
    return markdown(["minus NDCL, 80 pairs per setting", "validation", "target", "many", "few"], rows)


def plus_series() -> str:
    """NDCL-plus without style minus BSoftmax in three series."""
    rows = [
        [name, *(gap(folder, UNSTYLED, "bsoftmax", measure) for measure in SELECTING)]
        for name, folder in SERIES.items()
    ]
    joined = [
        pd.concat([gaps(folder, UNSTYLED, "bsoftmax", measure) for folder in SERIES.values()]) for measure in SELECTING
    ]
    rows.append([f"all three ({len(joined[0])} pairs)", *map(spread, joined)])
    header = f"{UNSTYLED}, minus BSoftmax, TotalHeavyTail and Duality, 24 pairs each"
    return markdown([header, "validation", "target", "few"], rows)


def plus_twenty() -> str:
    """NDCL-plus without style minus BSoftmax with twenty trials."""
    folder = f"{FROZEN}/twenty-trials"
    rows = [
        [setting, *(gap(folder, UNSTYLED, "bsoftmax", measure, (setting,), digits=2) for measure in FOUR)]
        for setting in SETTINGS
    ]
    header = f"{UNSTYLED}, minus BSoftmax, frozen features, 80 pairs each"
    return markdown([header, "validation", "target", "many", "few"], rows)


def plus_neighbors() -> str:
    """NDCL-plus minus its neighbors in three series: all classes, and frequent ones."""
    series = {**SERIES, "frozen features": f"{FROZEN}/candidates"}
    rows = [
        [pair_title(UNSTYLED, other)]
        + [gap(folder, UNSTYLED, other, m) for folder in series.values() for m in ("target_accuracy", "target_many")]
        for other in ("erm", "ndcl", NO_CON, "bsoftmax")
    ]
    header = [cell for name in series for cell in (name, "many")]
    return markdown(["TotalHeavyTail and Duality, 24 pairs", *header], rows)


def style_choice() -> str:
    """Validation accuracy of the candidates for NDCL-plus, in order of simplicity; targets play no part."""
    names = methods(CHOICE)
    order = [variant["name"] for variant in read_toml(RESULTS / CHOICE / "sweep.toml")["variants"]]
    rows = []
    for name in sorted(names, key=order.index):
        cells = [_validation(folder, row) for folder in (CHOICE, FINALISTS) for row in (name, f"{name}+ema")]
        rows.append([f"**{name}**" if name == "both, half the images" else name, *cells])
    rounds = ["round 1, 8 runs", "averaged weights", "rounds 1 and 2, 24 runs", "averaged weights"]
    return markdown(["validation accuracy, %", *rounds], rows)


def _validation(folder: str, method: str) -> str:
    frame = table(folder)
    part = frame.loc[frame["method"] == method, "validation_accuracy"]
    return text(100 * part.mean(), digits=2) if len(part) else "-"


def confirmation(other: str) -> Callable[[], str]:
    """NDCL-plus minus another method on fresh seeds: mean, tests, and the pairs in which it is ahead."""

    def build() -> str:
        series = {
            title: gaps(CONFIRM, "ndcl_plus", other, "target_accuracy", settings)
            for title, settings in _confirmed_settings().items()
        }
        both = next(iter(series.values()))
        series["both without sketch (not planned)"] = both[both.index.get_level_values("target") != "sketch"]
        rows = []
        for title, found in series.items():
            tests = [stats.ttest_1samp(found, 0).pvalue, stats.wilcoxon(found).pvalue]
            ahead = f"{(found > 0).sum()} of {len(found)}"
            rows.append([title, spread(found, 2), *(f"{p:.2g}" for p in tests), ahead])
        header = [f"{pair_title('ndcl_plus', other)}, points on the target", "mean", "t-test, p", "Wilcoxon, p"]
        return markdown([*header, "pairs ahead"], rows)

    return build


def _confirmed_settings() -> dict[str, Sequence[str]]:
    return {"TotalHeavyTail and Duality": BOTH, **{setting: (setting,) for setting in SETTINGS}}


def confirmation_shots(other: str) -> Callable[[], str]:
    """NDCL-plus minus another method: validation, and frequent, medium and few-shot classes of the target."""

    def build() -> str:
        measures = ("validation_accuracy", "target_many", "target_medium", "target_few")
        rows = [
            [title, *(gap(CONFIRM, "ndcl_plus", other, measure, settings) for measure in measures)]
            for title, settings in _confirmed_settings().items()
        ]
        return markdown([f"{pair_title('ndcl_plus', other)}, points", "validation", "many", "medium", "few"], rows)

    return build


def confirmation_targets(other: str) -> Callable[[], str]:
    """NDCL-plus minus another method on fresh seeds: each target, mean over three trials."""

    def build() -> str:
        rows = []
        for setting in SETTINGS:
            found = gaps(CONFIRM, "ndcl_plus", other, "target_accuracy", (setting,)).groupby("target").mean()
            rows.append([setting, *(text(value, sign=True) for value in found)])
        return markdown([f"{pair_title('ndcl_plus', other)}, points on the target", *found.index], rows)

    return build


def confirmation_ranks() -> str:
    """Friedman's test over settings and targets on fresh seeds, and the average rank of each method."""
    frame = chosen(CONFIRM)
    part = frame[frame["method"].isin(CONFIRMED)]
    found = part.pivot_table(index=["setting", "target"], columns="method", values="target_accuracy")
    test, place = friedman(found), found.rank(axis=1, ascending=False).mean()
    difference = nemenyi_critical_difference(found.shape[1], found.shape[0])
    ranked = [text(place[name], digits=2) for name in reversed(CONFIRMED)]
    header = ["cases", *map(method_title, reversed(CONFIRMED)), "critical difference", "Friedman, p"]
    return markdown(header, [[str(len(found)), *ranked, f"{difference:.2f}", f"{test.chi2_p:.1g}"]])


def style_for_others() -> str:
    """Style mixing on minus off in four methods, and methods with style mixing against each other, on fresh seeds."""
    styled = {name: (OTHERS, f"{method_title(name)}, style") for name in ("erm", "ndcl", "bsoftmax")}
    styled["ndcl_plus"] = (CONFIRM, "ndcl_plus")
    plain = {name: (CONFIRM, name) for name in ("erm", "ndcl", "bsoftmax")} | {"ndcl_plus": (OTHERS, UNSTYLED)}
    pairs = [(f"{method_title(name)}: style on - off", styled[name], plain[name]) for name in styled]
    pairs.append(("NDCL-plus - BSoftmax, both without style", plain["ndcl_plus"], plain["bsoftmax"]))
    pairs.append(("NDCL-plus - BSoftmax, both with style", styled["ndcl_plus"], styled["bsoftmax"]))
    rows = []
    for title, one, other in pairs:
        parts = (BOTH, (TAIL,), (DUALITY,))
        cells = [spread(gaps_between(one, other, "target_accuracy", settings)) for settings in parts]
        both = gaps_between(one, other, "target_accuracy")
        few, valid = (gaps_between(one, other, measure) for measure in ("target_few", "validation_accuracy"))
        rows.append([title, *cells, f"{(both > 0).sum()} of {len(both)}", spread(few), spread(valid)])
    header = ["points", "both settings", TAIL, DUALITY, "pairs ahead", FEW, "validation"]
    return markdown(header, rows)


def efficientnet() -> str:
    """Six methods with EfficientNet-Lite4, one trial, next to NDCL of the paper."""
    names = ("coral", "reweight", *CONFIRMED)
    rows = [[method_title(name), *_pairs_of_means(EFFICIENT, name, SETTINGS)] for name in names]
    published = [cell for setting in SETTINGS for cell in (_paper("ndcl", setting), "-")]
    rows.append(["NDCL, paper (ResNet-50)", *published])
    for other in ("bsoftmax", "erm"):
        gained = [gap(EFFICIENT, "ndcl_plus", other, m, (setting,)) for setting in SETTINGS for m in ACCURACY]
        rows.append([pair_title("ndcl_plus", other), *gained])
    return markdown(["", *_with_few(SETTINGS)], rows)


def no_style_difference() -> str:
    """Style mixing where the styles of the domains do not differ: on, off, and as validation chooses in each pair."""
    rows = []
    for title, folder, on, off in (
        ("photo", PHOTO, "ndcl_plus", UNSTYLED),
        ("digits", DIGITS, "NDCL-plus, with style", "ndcl_plus"),
    ):
        frame = chosen(folder).set_index(["target", "trial", "method"])
        target, valid = (100 * frame[name].unstack("method") for name in ("target_accuracy", "validation_accuracy"))
        better = valid[on] > valid[off]  # a tie leaves style off
        picked = target[on].where(better, target[off])
        rows.append([
            title, str(len(target)), *(text(target[name].mean()) for name in ("bsoftmax", off, on)),
            spread(target[on] - target[off]), f"{better.sum()} of {len(better)}", spread(picked - target[off]),
        ])  # fmt: skip
    header = ["domains alike", "pairs", "BSoftmax", "NDCL-plus, style off", "style on", "on - off"]
    return markdown([*header, "validation chooses on", "chosen - off"], rows)


def style_cost() -> str:
    """Step time with style mixing over that of the same method without it."""
    with (RESULTS / "style-cost.csv").open(newline="", encoding="utf-8") as file:
        rows = [
            [f"{row['backbone']}, {row['size']} px, {row['batch']} images", method_title(row["method"]), row["style"],
             text(1000 * float(row["seconds_per_step"]), digits=2), row["ratio"]]
            for row in csv.DictReader(file)
        ]  # fmt: skip
    return markdown(["network", "method", "style", "milliseconds per step", "ratio"], rows)


def confirmation_theory() -> str:
    """The posterior discrepancies and the margin of the theory on fresh seeds."""
    names = ("posterior_sources", "posterior_target", "target_margin")
    rows = []
    for setting in SETTINGS:
        frame = chosen(CONFIRM)
        part = frame[frame["setting"] == setting].groupby("method")[list(names)].mean()
        cells = [f"{part[name]['bsoftmax']:.3f} → {part[name]['ndcl_plus']:.3f}" for name in names]
        rows.append([setting, *cells])
    return markdown(["BSoftmax → NDCL-plus", *(QUANTITIES[name] for name in names)], rows)


def confirmation_means() -> str:
    """Accuracy on fresh seeds."""
    rows = [[method_title(name), *_pairs_of_means(CONFIRM, name, SETTINGS)] for name in CONFIRMED]
    return markdown(["seeds 3 to 5", *_with_few(SETTINGS)], rows)


def probe() -> str:
    """The first probe: validation / target / few."""
    folder = f"{TUNED}/probe"
    frame = table(folder)
    rows = []
    for name in frame.groupby("method")["validation_accuracy"].mean().sort_values(ascending=False).index:
        cells = [name]
        for setting in BOTH:
            part = frame[(frame["method"] == name) & (frame["setting"] == setting)]
            values = " / ".join(text(100 * part[measure].mean()) for measure in SELECTING)
            cells.append("not run" if part.empty else f"{values} (one target)" if len(part) == 1 else values)
        rows.append(cells)
    return markdown(["validation / target / few", *BOTH], rows)


QUANTITIES = {
    "target_margin": "margin on the target", "validation_margin": "margin on validation",
    "posterior_target": "posterior discrepancy, sources to target",
    "posterior_sources": "posterior discrepancy among sources",
}  # fmt: skip
PUBLISHED = {"target_margin": "+0.87", "posterior_target": "-0.89"}  # 12 means on OfficeHome


def theory(folder: str) -> Callable[[], str]:
    """Pearson's r with target accuracy."""

    def build() -> str:
        rows = []
        for name, title in QUANTITIES.items():
            found = correlations(folder)[name]
            values = [text(found[points], digits=2, sign=True) for points in ("all", "within", "means")]
            rows.append([title, *values, PUBLISHED.get(name, "-")])
        return markdown(["quantity", "all runs", "within cells", "method means", "paper (method means)"], rows)

    return build


def orders() -> str:
    """Spearman's correlation of the order of the methods."""
    rows = []
    for setting in SETTINGS:
        ours, other = order(TUNED, setting), order(FROZEN, setting)
        targets = sorted(set(table(TUNED)["target"]))
        between = [
            order(TUNED, setting, a).corr(order(TUNED, setting, b), method="spearman")
            for a, b in combinations(targets, 2)
        ]
        values = [ours.corr(_published(setting), method="spearman"), other.corr(_published(setting), method="spearman")]
        values.append(ours.corr(other, method="spearman"))
        cells = [text(value, digits=2) for value in values]
        rows.append([setting, *cells, f"{min(between):.2f} to {max(between):.2f}"])
    header = ["", "fine-tuned and paper", "frozen and paper", "fine-tuned and frozen"]
    return markdown([*header, "between targets, fine-tuned"], rows)


def rank_tests() -> str:
    """Friedman's test and the average ranks that matter."""
    rows = []
    for title, folder, extra in (
        ("fine-tuned", TUNED, []),
        ("fine-tuned, with NDCL-plus", TUNED, ["ndcl_plus"]),
        ("frozen features", FROZEN, []),
    ):
        found = cases(folder, extra)
        test = friedman(found)
        place = ranks(folder, extra).sort_values()
        first = ", ".join(f"{method_title(name)} {place[name]:.1f}" for name in place.index[:3])
        others = [f"{method_title(name)} {place[name]:.1f}" for name in ("ndcl", "erm")]
        difference = nemenyi_critical_difference(found.shape[1], found.shape[0])
        rows.append([title, f"{test.chi2:.1f}", f"{test.chi2_p:.0e}", f"{difference:.1f}", first, *others])
    return markdown(["", "chi2", "p", "critical difference", "best three", "NDCL", "ERM"], rows)


def faults() -> str:
    """Faults that were tried, and how many were survived."""
    with (RESULTS / "faults.csv").open(encoding="utf-8", newline="") as file:
        counts = {row["fault"]: row for row in csv.DictReader(file)}
    rows = [
        [row.fault, counts[row.fault]["tried"], counts[row.fault]["survived"], row.seen]
        for row in FAULT_ROWS
        if row.fault in counts
    ]
    return markdown(["fault", "tried", "survived", "what you see"], rows)


def load() -> str:
    """CPU seconds and peak memory of commands on 1x, 2x and 4x of a load, and how both grow."""
    with (RESULTS / "load.csv").open(encoding="utf-8", newline="") as file:
        measured = list(csv.DictReader(file))
    kinds = dict.fromkeys((row["load"], row["command"]) for row in measured)
    rows = []
    for unit, command in kinds:
        found = {int(row["factor"]): row for row in measured if (row["load"], row["command"]) == (unit, command)}
        seconds, memory, sizes = (
            [float(row[key]) for row in found.values()] for key in ("cpu_seconds", "peak_mib", "n")
        )
        grown = f"{seconds[-1] / seconds[0]:.1f} for {sizes[-1] / sizes[0]:.0f} x" if len(found) > 1 else "one size"
        rows.append([f"{_series(sizes)} {unit}", command, _series(seconds), _series(memory), grown])
    return markdown(["load", "command", "CPU seconds", "peak memory, MiB", "growth of time"], rows)


def _series(values: Sequence[float]) -> str:
    return " / ".join(f"{value:,.0f}" for value in values)


TABLES: dict[str, Callable[[], str]] = {
    "faults": faults,
    "load": load,
    "new-site-coverage": new_site.coverage_table,
    "new-site-errors": new_site.error_table,
    "new-site-mixes": new_site.mix_table,
    "new-site-warnings": new_site.warning_table,
    "new-site-labels": new_site.label_table,
    "columns": columns,
    "readme": readme,
    "over-erm": over_erm,
    "runs": runs,
    "fine-tuned": fine_tuned,
    "fine-tuned-pairs": fine_tuned_pairs,
    "fine-tuned-lengths": lengths(TUNED),
    "shots": shots,
    "long": long_runs,
    "long-methods": long_methods,
    "large-images": large_images,
    "large-images-pairs": large_pairs,
    "large-images-lengths": lengths(LARGE),
    "paper": paper,
    "frozen": frozen,
    "frozen-average": frozen_average,
    "frozen-pairs": frozen_pairs(1),
    "frozen-lengths": lengths(FROZEN),
    "searched": searched,
    "searched-pairs": frozen_pairs(3),
    "variants-fine-tuned": variants(f"{TUNED}/study"),
    "variants-by-setting": variants_by_setting(f"{TUNED}/study"),
    "variants-frozen": variants(f"{FROZEN}/study"),
    "variants-frozen-pairs": frozen_changes,
    "candidates": candidates,
    "two-changes": two_changes,
    "plus-series": plus_series,
    "plus-twenty": plus_twenty,
    "plus-neighbors": plus_neighbors,
    "style-choice": style_choice,
    **{
        f"{name}{suffix}": build(other)
        for suffix, other in (("", "bsoftmax"), ("-erm", "erm"))
        for name, build in (
            ("confirmation", confirmation),
            ("confirmation-shots", confirmation_shots),
            ("confirmation-targets", confirmation_targets),
        )
    },
    "confirmation-ranks": confirmation_ranks,
    "style-for-others": style_for_others,
    "efficientnet": efficientnet,
    "no-style-difference": no_style_difference,
    "style-cost": style_cost,
    "confirmation-theory": confirmation_theory,
    "confirmation-means": confirmation_means,
    "probe": probe,
    "theory-fine-tuned": theory(TUNED),
    "theory-large-images": theory(LARGE),
    "theory-frozen": theory(FROZEN),
    "orders": orders,
    "rank-tests": rank_tests,
}

MARKED = re.compile(r"(<!-- table: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def pages() -> list[Path]:
    """Pages that may hold tables."""
    return sorted(path for where in ("*.md", "docs/**/*.md", "results/**/*.md") for path in ROOT.glob(where))


def names(page: str) -> list[str]:
    """The tables that a page marks."""
    return [match[1] for match in MARKED.findall(page)]


def filled(page: str) -> str:
    """The page with every marked table written anew."""
    return MARKED.sub(lambda match: f"{match[1]}{TABLES[match[2]]()}\n{match[3]}", page)


def main() -> None:
    """Rewrite the tables, or name the pages where they are stale."""
    check, stale = "--check" in sys.argv, False
    for page in pages():
        old = page.read_text(encoding="utf-8")
        new = filled(old)
        if new != old:
            stale = True
            print(f"{'stale' if check else 'wrote'}: {page.relative_to(ROOT)}")
            if not check:
                page.write_text(new, encoding="utf-8")
    if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != methods_page():
        stale = True
        print(f"{'stale' if check else 'wrote'}: {PAGE.relative_to(ROOT)}")
        if not check:
            PAGE.write_text(methods_page(), encoding="utf-8")
    if check and stale:
        raise SystemExit(1)


if __name__ == "__main__":
    main()

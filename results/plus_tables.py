"""Tables of docs/explanation/ndcl-plus.md: how NDCL-plus was chosen, its confirmation, style mixing."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from longshift.analysis import friedman, nemenyi_critical_difference
from longshift.analysis.significance import holm
from longshift.io import read_toml
from longshift.report import method_title
from results.numbers import (
    ACCURACY,
    BOTH,
    CHOICE,
    CONFIRM,
    EFFICIENT,
    FINALISTS,
    FOUR,
    FROZEN,
    GINIDG,
    NO_CON,
    OTHERS,
    RESULTS,
    SELECTING,
    SERIES,
    SETTINGS,
    TUNED,
    UNSTYLED,
    average_ranks,
    chosen,
    gap,
    gaps,
    gaps_between,
    markdown,
    mean,
    methods,
    pair_title,
    pairs_of_means,
    paper_mean,
    spread,
    table,
    text,
    with_few,
)
from results.theory_tables import QUANTITIES

FEW = "few-shot classes"
CONFIRMED = ("erm", "ndcl", "bsoftmax", "ndcl_plus")
# Where the runs of a method with and without style mixing are, on fresh seeds.
NO_STYLE = {name: (CONFIRM, name) for name in ("erm", "ndcl", "bsoftmax")}
NO_STYLE |= {"ndcl_plus": (OTHERS, UNSTYLED), "reweight": (OTHERS, "reweight"), "tcri": (OTHERS, "tcri")}
WITH_STYLE = {name: (OTHERS, f"{method_title(name)}, style") for name in NO_STYLE}
WITH_STYLE["ndcl_plus"] = CONFIRM, "ndcl_plus"
PHOTO, DIGITS = "no-style-difference/photo", "no-style-difference/digits"


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
        tests = {title: stats.ttest_1samp(found, 0).pvalue for title, found in series.items()}
        planned = dict(
            zip(_confirmed_settings(), holm(np.array([tests[title] for title in _confirmed_settings()])), strict=True)
        )
        rows = []
        for title, found in series.items():
            corrected = f"{planned[title]:.2g}" if title in planned else "-"
            p_values = [f"{tests[title]:.2g}", corrected, f"{stats.wilcoxon(found).pvalue:.2g}"]
            rows.append([title, spread(found, 2), *p_values, f"{(found > 0).sum()} of {len(found)}"])
        header = [f"{pair_title('ndcl_plus', other)}, points on the target", "mean", "t-test, p"]
        return markdown([*header, "Holm, p", "Wilcoxon, p", "pairs ahead"], rows)

    return build


def confirmation_units() -> str:
    """NDCL-plus minus two methods where not each pair but each target, seed or case counts as one observation."""
    units = {
        "pair (setting, target and seed)": ["setting", "target", "trial"],
        "setting and target": ["setting", "target"],
        "target": ["target"],
        "seed": ["trial"],
    }
    others = ("bsoftmax", "erm")
    rows = []
    for title, levels in units.items():
        parts = [gaps(CONFIRM, "ndcl_plus", name, "target_accuracy").groupby(levels).mean() for name in others]
        cells = [cell for part in parts for cell in (spread(part, 2), f"{stats.ttest_1samp(part, 0).pvalue:.2g}")]
        rows.append([title, str(len(parts[0])), *cells])
    header = [cell for name in others for cell in (f"minus {method_title(name)}", "t-test, p")]
    return markdown(["one observation is a", "observations", *header], rows)


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
    test, place = friedman(found), average_ranks(found)
    difference = nemenyi_critical_difference(found.shape[1], found.shape[0])
    ranked = [text(place[name], digits=2) for name in reversed(CONFIRMED)]
    header = ["cases", *map(method_title, reversed(CONFIRMED)), "critical difference", "Friedman, p"]
    return markdown(header, [[str(len(found)), *ranked, f"{difference:.2f}", f"{test.chi2_p:.1g}"]])


def style_for_others() -> str:
    """Style mixing on minus off in six methods, and methods with style mixing against each other, on fresh seeds."""
    pairs = [(f"{method_title(name)}: style on - off", WITH_STYLE[name], NO_STYLE[name]) for name in WITH_STYLE]
    pairs.append(("NDCL-plus - BSoftmax, both without style", NO_STYLE["ndcl_plus"], NO_STYLE["bsoftmax"]))
    pairs.append(("NDCL-plus - BSoftmax, both with style", WITH_STYLE["ndcl_plus"], WITH_STYLE["bsoftmax"]))
    return _paired(pairs, SETTINGS)


def style_ranks() -> str:
    """Average ranks of six methods with and without style mixing on fresh seeds."""
    found = {}
    for style, places in (("on", WITH_STYLE), ("off", NO_STYLE)):
        for name, (folder, row) in places.items():
            frame = chosen(folder)
            part = frame[frame["method"] == row]
            found[name, style] = part.groupby(["setting", "target"])["target_accuracy"].mean()
    scores = pd.DataFrame(found)
    place = average_ranks(scores)
    rows = [[method_title(name), *(text(place[name, style], digits=2) for style in ("off", "on"))] for name in NO_STYLE]
    difference = nemenyi_critical_difference(scores.shape[1], scores.shape[0])
    title = f"average rank of {scores.shape[1]} over {len(scores)} cases, critical difference {difference:.2f}"
    return markdown([title, "without style mixing", "with it"], rows)


def _paired(pairs: Iterable[tuple[str, tuple[str, str], tuple[str, str]]], settings: Sequence[str] = BOTH) -> str:
    """Paired differences: a title and two methods, each with the folder of its runs, per row."""
    rows = []
    for title, one, other in pairs:
        every, few, valid = (
            gaps_between(one, other, measure, settings) for measure in (*ACCURACY, "validation_accuracy")
        )
        cells = [spread(gaps_between(one, other, "target_accuracy", (setting,))) for setting in settings]
        ahead = f"{(every > 0).sum()} of {len(every)}"
        rows.append([title, spread(every), *cells, ahead, spread(few), spread(valid)])
    together = "both settings" if len(settings) == 2 else "all settings"
    return markdown(["points", together, *settings, "pairs ahead", FEW, "validation"], rows)


def mixstyle() -> str:
    """BSoftmax with styles of pixels and with MixStyle on features, minus BSoftmax."""
    folder = "mixstyle/digits"
    kinds = {"style": "amplitude or convolution", "pixel statistics": "statistics of pixels", "MixStyle": "MixStyle"}
    pairs = [(f"digits: {title}", (folder, f"BSoftmax, {name}"), (folder, "bsoftmax")) for name, title in kinds.items()]
    for place, name in ((OTHERS, "style"), ("mixstyle/pacs", "MixStyle")):
        pairs.append((f"PACS: {kinds[name]}", (place, f"BSoftmax, {name}"), (CONFIRM, "bsoftmax")))
    return _paired(pairs)


def efficientnet() -> str:
    """Six methods with EfficientNet-Lite4 next to NDCL of the paper."""
    names = ("coral", "reweight", *CONFIRMED)
    rows = [[method_title(name), *pairs_of_means(EFFICIENT, name, SETTINGS)] for name in names]
    published = [cell for setting in SETTINGS for cell in (paper_mean("ndcl", setting), "-")]
    rows.append(["NDCL, paper (ResNet-50)", *published])
    for other in ("bsoftmax", "erm"):
        gained = [gap(EFFICIENT, "ndcl_plus", other, m, (setting,)) for setting in SETTINGS for m in ACCURACY]
        rows.append([pair_title("ndcl_plus", other), *gained])
    return markdown(["", *with_few(SETTINGS)], rows)


def efficientnet_long() -> str:
    """EfficientNet-Lite4 under GINIDG after 600 and 1,000 steps: two methods, and one minus the other."""
    long = f"{EFFICIENT}/long"
    rows = []
    for name in ("bsoftmax", "ndcl_plus"):
        cells = []
        for measure in ACCURACY:
            cells += [mean(folder, name, GINIDG, measure) for folder in (EFFICIENT, long)]
            cells.append(spread(gaps_between((long, name), (EFFICIENT, name), measure, (GINIDG,))))
        rows.append([method_title(name), *cells])
    leads = []
    for measure in ACCURACY:
        leads += [gap(folder, "ndcl_plus", "bsoftmax", measure, (GINIDG,)) for folder in (EFFICIENT, long)] + ["-"]
    rows.append([pair_title("ndcl_plus", "bsoftmax"), *leads])
    header = [f"{steps}{of}" for of in ("", ", few") for steps in ("600 steps", "1,000 steps", "difference")]
    return markdown([GINIDG, *header], rows)


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
        # As `fit` does: by accuracy at held-out sites, here the two other parts of the same seed.
        elsewhere = (target[on] - target[off]).groupby("trial").transform("sum") - (target[on] - target[off])
        fitted = target[on].where(elsewhere > 0, target[off])
        rows.append([
            title, str(len(target)), *(text(target[name].mean()) for name in ("bsoftmax", off, on)),
            spread(target[on] - target[off]), f"{better.sum()} of {len(better)}", spread(picked - target[off]),
            f"{(elsewhere > 0).sum()} of {len(better)}", spread(fitted - target[off]),
        ])  # fmt: skip
    header = ["domains alike", "pairs", "BSoftmax", "NDCL-plus, style off", "style on", "on - off"]
    chosen_by = ["validation chooses on", "chosen - off", "other parts choose on", "chosen - off"]
    return markdown([*header, *chosen_by], rows)


def style_cost(file: Path = RESULTS / "style-cost.csv") -> str:
    """Step time with style mixing over that of the same method without it; files without ranges have medians only."""
    with file.open(newline="", encoding="utf-8") as lines:
        measured = sorted(csv.DictReader(lines), key=_cost_order)
    rows = [
        [f"{row['backbone']}, {row['size']} px, {row['batch']} images", method_title(row["method"]), row["style"],
         "yes" if row["compile"] == "on" else "no", _with_range(row, "seconds_per_step", "seconds", 1000, 2),
         _with_range(row, "ratio", "ratio", 1, 3)]
        for row in measured
    ]  # fmt: skip
    return markdown(["network", "method", "style", "compiled", "milliseconds per step", "ratio"], rows)


def _cost_order(row: dict[str, str]) -> tuple[object, ...]:
    """By network and method, compiled rows first, and among them without style first."""
    network = row["backbone"], int(row["size"]), int(row["batch"])
    return *network, row["method"] != "ndcl_plus", row["method"], row["compile"] != "on", row["style"] != "none"


def _with_range(row: dict[str, str], name: str, stem: str, factor: float, digits: int) -> str:
    """`13.03 (13.01 to 13.10)`: a number with its least and greatest, where the row has them."""
    cell = text(factor * float(row[name]), digits=digits)
    if not row.get(f"{stem}_low") or (name == "ratio" and row["style"] == "none"):
        return cell
    low, high = (text(factor * float(row[f"{stem}_{end}"]), digits=digits) for end in ("low", "high"))
    return f"{cell} ({low} to {high})"


def confirmation_theory() -> str:
    """The posterior discrepancies and the margin of the theory on fresh seeds."""
    names = ("posterior_sources", "posterior_target", "target_margin")
    rows = []
    for setting in SETTINGS:
        frame = chosen(CONFIRM)
        part = frame[frame["setting"] == setting].groupby("method")[list(names)].mean()
        cells = []
        for name in names:
            p = stats.ttest_1samp(gaps(CONFIRM, "ndcl_plus", "bsoftmax", name, (setting,)), 0).pvalue
            cells.append(f"{part[name]['bsoftmax']:.3f} → {part[name]['ndcl_plus']:.3f} (p = {p:.1g})")
        rows.append([setting, *cells])
    return markdown(["BSoftmax → NDCL-plus", *(QUANTITIES[name] for name in names)], rows)


def confirmation_means() -> str:
    """Accuracy on fresh seeds."""
    rows = [[method_title(name), *pairs_of_means(CONFIRM, name, SETTINGS)] for name in CONFIRMED]
    rows.insert(-1, ["BSoftmax with style mixing", *styled_bsoftmax()])
    return markdown(["seeds 3 to 5", *with_few(SETTINGS)], rows)


def styled_bsoftmax() -> list[str]:
    """BSoftmax with the style mixing of NDCL-plus on fresh seeds: `pairs_of_means`."""
    return pairs_of_means(OTHERS, "BSoftmax, style", SETTINGS)


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

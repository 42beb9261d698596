"""Tables of docs/explanation/ndcl-plus.md: how NDCL-plus was chosen, its confirmation, style mixing."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from longshift.analysis import friedman, nemenyi_critical_difference
from longshift.analysis.significance import holm
from longshift.io import read_toml
from longshift.report import method_title
from results import numbers as n
from results.theory_tables import QUANTITIES

FEW = "few-shot classes"
CONFIRMED = ("erm", "ndcl", "bsoftmax", "ndcl_plus")
# Where the runs of a method with and without style mixing are, on fresh seeds.
NO_STYLE = {name: (n.CONFIRM, name) for name in ("erm", "ndcl", "bsoftmax")}
NO_STYLE |= {"ndcl_plus": (n.OTHERS, n.UNSTYLED), "reweight": (n.OTHERS, "reweight"), "tcri": (n.OTHERS, "tcri")}
WITH_STYLE = {name: (n.OTHERS, f"{method_title(name)}, style") for name in NO_STYLE}
WITH_STYLE["ndcl_plus"] = n.CONFIRM, "ndcl_plus"
PHOTO, DIGITS = "no-style-difference/photo", "no-style-difference/digits"


def plus_series() -> str:
    """NDCL-plus without style minus BSoftmax in three series."""
    rows = [
        [name, *(n.gap(folder, n.UNSTYLED, "bsoftmax", measure) for measure in n.SELECTING)]
        for name, folder in n.SERIES.items()
    ]
    joined = [
        pd.concat([n.gaps(folder, n.UNSTYLED, "bsoftmax", measure) for folder in n.SERIES.values()])
        for measure in n.SELECTING
    ]
    rows.append([f"all three ({len(joined[0])} pairs)", *map(n.spread, joined)])
    header = f"{n.UNSTYLED}, minus BSoftmax, TotalHeavyTail and Duality, 24 pairs each"
    return n.markdown([header, "validation", "target", "few"], rows)


def plus_twenty() -> str:
    """NDCL-plus without style minus BSoftmax with twenty trials."""
    folder = f"{n.FROZEN}/twenty-trials"
    rows = [
        [setting, *(n.gap(folder, n.UNSTYLED, "bsoftmax", measure, (setting,), digits=2) for measure in n.FOUR)]
        for setting in n.SETTINGS
    ]
    header = f"{n.UNSTYLED}, minus BSoftmax, frozen features, 80 pairs each"
    return n.markdown([header, "validation", "target", "many", "few"], rows)


def plus_neighbors() -> str:
    """NDCL-plus minus its neighbors in three series: all classes, and frequent ones."""
    series = {**n.SERIES, "frozen features": f"{n.FROZEN}/candidates"}
    rows = [
        [n.pair_title(n.UNSTYLED, other)]
        + [
            n.gap(folder, n.UNSTYLED, other, m)
            for folder in series.values()
            for m in ("target_accuracy", "target_many")
        ]
        for other in ("erm", "ndcl", n.NO_CON, "bsoftmax")
    ]
    header = [cell for name in series for cell in (name, "many")]
    return n.markdown(["TotalHeavyTail and Duality, 24 pairs", *header], rows)


def style_choice() -> str:
    """Validation accuracy of the candidates for NDCL-plus, in order of simplicity; targets play no part."""
    names = n.methods(n.CHOICE)
    order = [variant["name"] for variant in read_toml(n.RESULTS / n.CHOICE / "sweep.toml")["variants"]]
    rows = []
    for name in sorted(names, key=order.index):
        cells = [_validation(folder, row) for folder in (n.CHOICE, n.FINALISTS) for row in (name, f"{name}+ema")]
        rows.append([f"**{name}**" if name == "both, half the images" else name, *cells])
    rounds = ["round 1, 8 runs", "averaged weights", "rounds 1 and 2, 24 runs", "averaged weights"]
    return n.markdown(["validation accuracy, %", *rounds], rows)


def _validation(folder: str, method: str) -> str:
    frame = n.table(folder)
    part = frame.loc[frame["method"] == method, "validation_accuracy"]
    return n.text(100 * part.mean(), digits=2) if len(part) else "-"


def confirmation(other: str) -> str:
    """NDCL-plus minus another method on fresh seeds: mean, tests, and the pairs in which it is ahead."""
    series = {
        title: n.gaps(n.CONFIRM, "ndcl_plus", other, "target_accuracy", settings)
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
        rows.append([title, n.spread(found, 2), *p_values, f"{(found > 0).sum()} of {len(found)}"])
    header = [f"{n.pair_title('ndcl_plus', other)}, points on the target", "mean", "t-test, p"]
    return n.markdown([*header, "Holm, p", "Wilcoxon, p", "pairs ahead"], rows)


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
        parts = [n.gaps(n.CONFIRM, "ndcl_plus", name, "target_accuracy").groupby(levels).mean() for name in others]
        cells = [cell for part in parts for cell in (n.spread(part, 2), f"{stats.ttest_1samp(part, 0).pvalue:.2g}")]
        rows.append([title, str(len(parts[0])), *cells])
    header = [cell for name in others for cell in (f"minus {method_title(name)}", "t-test, p")]
    return n.markdown(["one observation is a", "observations", *header], rows)


def _confirmed_settings() -> dict[str, Sequence[str]]:
    return {"TotalHeavyTail and Duality": n.BOTH, **{setting: (setting,) for setting in n.SETTINGS}}


def confirmation_shots(other: str) -> str:
    """NDCL-plus minus another method: validation, and frequent, medium and few-shot classes of the target."""
    measures = ("validation_accuracy", "target_many", "target_medium", "target_few")
    rows = [
        [title, *(n.gap(n.CONFIRM, "ndcl_plus", other, measure, settings) for measure in measures)]
        for title, settings in _confirmed_settings().items()
    ]
    return n.markdown([f"{n.pair_title('ndcl_plus', other)}, points", "validation", "many", "medium", "few"], rows)


def confirmation_targets(other: str) -> str:
    """NDCL-plus minus another method on fresh seeds: each target, mean over three trials."""
    rows = []
    for setting in n.SETTINGS:
        found = n.gaps(n.CONFIRM, "ndcl_plus", other, "target_accuracy", (setting,)).groupby("target").mean()
        rows.append([setting, *(n.text(value, sign=True) for value in found)])
    return n.markdown([f"{n.pair_title('ndcl_plus', other)}, points on the target", *found.index], rows)


def confirmation_ranks() -> str:
    """Friedman's test over settings and targets on fresh seeds, and the average rank of each method."""
    frame = n.chosen(n.CONFIRM)
    part = frame[frame["method"].isin(CONFIRMED)]
    found = part.pivot_table(index=["setting", "target"], columns="method", values="target_accuracy")
    test, place = friedman(found), n.average_ranks(found)
    difference = nemenyi_critical_difference(found.shape[1], found.shape[0])
    ranked = [n.text(place[name], digits=2) for name in reversed(CONFIRMED)]
    header = ["cases", *map(method_title, reversed(CONFIRMED)), "critical difference", "Friedman, p"]
    return n.markdown(header, [[str(len(found)), *ranked, f"{difference:.2f}", f"{test.chi2_p:.1g}"]])


def style_for_others() -> str:
    """Style mixing on minus off in six methods, and methods with style mixing against each other, on fresh seeds."""
    pairs = [(f"{method_title(name)}: style on - off", WITH_STYLE[name], NO_STYLE[name]) for name in WITH_STYLE]
    pairs.append(("NDCL-plus - BSoftmax, both without style", NO_STYLE["ndcl_plus"], NO_STYLE["bsoftmax"]))
    pairs.append(("NDCL-plus - BSoftmax, both with style", WITH_STYLE["ndcl_plus"], WITH_STYLE["bsoftmax"]))
    return _paired(pairs, n.SETTINGS)


def style_ranks() -> str:
    """Average ranks of six methods with and without style mixing on fresh seeds."""
    found = {}
    for style, places in (("on", WITH_STYLE), ("off", NO_STYLE)):
        for name, (folder, row) in places.items():
            frame = n.chosen(folder)
            part = frame[frame["method"] == row]
            found[name, style] = part.groupby(["setting", "target"])["target_accuracy"].mean()
    scores = pd.DataFrame(found)
    place = n.average_ranks(scores)
    rows = [
        [method_title(name), *(n.text(place[name, style], digits=2) for style in ("off", "on"))] for name in NO_STYLE
    ]
    difference = nemenyi_critical_difference(scores.shape[1], scores.shape[0])
    title = f"average rank of {scores.shape[1]} over {len(scores)} cases, critical difference {difference:.2f}"
    return n.markdown([title, "without style mixing", "with it"], rows)


def _paired(pairs: Iterable[tuple[str, tuple[str, str], tuple[str, str]]], settings: Sequence[str] = n.BOTH) -> str:
    """Paired differences: a title and two methods, each with the folder of its runs, per row."""
    rows = []
    for title, one, other in pairs:
        every, few, valid = (
            n.gaps_between(one, other, measure, settings) for measure in (*n.ACCURACY, "validation_accuracy")
        )
        cells = [n.spread(n.gaps_between(one, other, "target_accuracy", (setting,))) for setting in settings]
        ahead = f"{(every > 0).sum()} of {len(every)}"
        rows.append([title, n.spread(every), *cells, ahead, n.spread(few), n.spread(valid)])
    together = "both settings" if len(settings) == 2 else "all settings"
    return n.markdown(["points", together, *settings, "pairs ahead", FEW, "validation"], rows)


def mixstyle() -> str:
    """BSoftmax with styles of pixels and with MixStyle on features, minus BSoftmax."""
    folder = "mixstyle/digits"
    kinds = {"style": "amplitude or convolution", "pixel statistics": "statistics of pixels", "MixStyle": "MixStyle"}
    pairs = [(f"digits: {title}", (folder, f"BSoftmax, {name}"), (folder, "bsoftmax")) for name, title in kinds.items()]
    for place, name in ((n.OTHERS, "style"), ("mixstyle/pacs", "MixStyle")):
        pairs.append((f"PACS: {kinds[name]}", (place, f"BSoftmax, {name}"), (n.CONFIRM, "bsoftmax")))
    return _paired(pairs)


def efficientnet() -> str:
    """Six methods with EfficientNet-Lite4 next to NDCL of the paper."""
    names = ("coral", "reweight", *CONFIRMED)
    rows = [[method_title(name), *n.pairs_of_means(n.EFFICIENT, name, n.SETTINGS)] for name in names]
    published = [cell for setting in n.SETTINGS for cell in (n.paper_mean("ndcl", setting), "-")]
    rows.append(["NDCL, paper (ResNet-50)", *published])
    for other in ("bsoftmax", "erm"):
        gained = [n.gap(n.EFFICIENT, "ndcl_plus", other, m, (setting,)) for setting in n.SETTINGS for m in n.ACCURACY]
        rows.append([n.pair_title("ndcl_plus", other), *gained])
    return n.markdown(["", *n.with_few(n.SETTINGS)], rows)


def efficientnet_long() -> str:
    """EfficientNet-Lite4 under GINIDG after 600 and 1,000 steps: two methods, and one minus the other."""
    long = f"{n.EFFICIENT}/long"
    rows = []
    for name in ("bsoftmax", "ndcl_plus"):
        cells = []
        for measure in n.ACCURACY:
            cells += [n.mean(folder, name, n.GINIDG, measure) for folder in (n.EFFICIENT, long)]
            cells.append(n.spread(n.gaps_between((long, name), (n.EFFICIENT, name), measure, (n.GINIDG,))))
        rows.append([method_title(name), *cells])
    leads = []
    for measure in n.ACCURACY:
        leads += [n.gap(folder, "ndcl_plus", "bsoftmax", measure, (n.GINIDG,)) for folder in (n.EFFICIENT, long)] + [
            "-"
        ]
    rows.append([n.pair_title("ndcl_plus", "bsoftmax"), *leads])
    header = [f"{steps}{of}" for of in ("", ", few") for steps in ("600 steps", "1,000 steps", "difference")]
    return n.markdown([n.GINIDG, *header], rows)


def no_style_difference() -> str:
    """Style mixing where the styles of the domains do not differ: on, off, and as validation chooses in each pair."""
    rows = []
    for title, folder, on, off in (
        ("photo", PHOTO, "ndcl_plus", n.UNSTYLED),
        ("digits", DIGITS, "NDCL-plus, with style", "ndcl_plus"),
    ):
        frame = n.chosen(folder).set_index(["target", "trial", "method"])
        target, valid = (100 * frame[name].unstack("method") for name in ("target_accuracy", "validation_accuracy"))
        better = valid[on] > valid[off]  # a tie leaves style off
        picked = target[on].where(better, target[off])
        # As `fit` does: by accuracy at held-out sites, here the two other parts of the same seed.
        elsewhere = (target[on] - target[off]).groupby("trial").transform("sum") - (target[on] - target[off])
        fitted = target[on].where(elsewhere > 0, target[off])
        rows.append([
            title, str(len(target)), *(n.text(target[name].mean()) for name in ("bsoftmax", off, on)),
            n.spread(target[on] - target[off]), f"{better.sum()} of {len(better)}", n.spread(picked - target[off]),
            f"{(elsewhere > 0).sum()} of {len(better)}", n.spread(fitted - target[off]),
        ])  # fmt: skip
    header = ["domains alike", "pairs", "BSoftmax", "NDCL-plus, style off", "style on", "on - off"]
    chosen_by = ["validation chooses on", "chosen - off", "other parts choose on", "chosen - off"]
    return n.markdown([*header, *chosen_by], rows)


def style_cost(file: Path = n.RESULTS / "style-cost.csv") -> str:
    """Step time with style mixing over that of the same method without it; files without ranges have medians only."""
    with file.open(newline="", encoding="utf-8") as lines:
        measured = sorted(csv.DictReader(lines), key=_cost_order)
    rows = [
        [f"{row['backbone']}, {row['size']} px, {row['batch']} images", method_title(row["method"]), row["style"],
         "yes" if row["compile"] == "on" else "no", _with_range(row, "seconds_per_step", "seconds", 1000, 2),
         _with_range(row, "ratio", "ratio", 1, 3)]
        for row in measured
    ]  # fmt: skip
    return n.markdown(["network", "method", "style", "compiled", "milliseconds per step", "ratio"], rows)


def _cost_order(row: dict[str, str]) -> tuple[object, ...]:
    """By network and method, compiled rows first, and among them without style first."""
    network = row["backbone"], int(row["size"]), int(row["batch"])
    return *network, row["method"] != "ndcl_plus", row["method"], row["compile"] != "on", row["style"] != "none"


def _with_range(row: dict[str, str], name: str, stem: str, factor: float, digits: int) -> str:
    """`13.03 (13.01 to 13.10)`: a number with its least and greatest, where the row has them."""
    cell = n.text(factor * float(row[name]), digits=digits)
    if not row.get(f"{stem}_low") or (name == "ratio" and row["style"] == "none"):
        return cell
    low, high = (n.text(factor * float(row[f"{stem}_{end}"]), digits=digits) for end in ("low", "high"))
    return f"{cell} ({low} to {high})"


def confirmation_theory() -> str:
    """The posterior discrepancies and the margin of the theory on fresh seeds."""
    names = ("posterior_sources", "posterior_target", "target_margin")
    rows = []
    for setting in n.SETTINGS:
        frame = n.chosen(n.CONFIRM)
        part = frame[frame["setting"] == setting].groupby("method")[list(names)].mean()
        cells = []
        for name in names:
            p = stats.ttest_1samp(n.gaps(n.CONFIRM, "ndcl_plus", "bsoftmax", name, (setting,)), 0).pvalue
            cells.append(f"{part[name]['bsoftmax']:.3f} → {part[name]['ndcl_plus']:.3f} (p = {p:.1g})")
        rows.append([setting, *cells])
    return n.markdown(["BSoftmax → NDCL-plus", *(QUANTITIES[name] for name in names)], rows)


def confirmation_means() -> str:
    """Accuracy on fresh seeds."""
    rows = [[method_title(name), *n.pairs_of_means(n.CONFIRM, name, n.SETTINGS)] for name in CONFIRMED]
    rows.insert(-1, ["BSoftmax with style mixing", *styled_bsoftmax()])
    return n.markdown(["seeds 3 to 5", *n.with_few(n.SETTINGS)], rows)


def styled_bsoftmax() -> list[str]:
    """BSoftmax with the style mixing of NDCL-plus on fresh seeds: `pairs_of_means`."""
    return n.pairs_of_means(n.OTHERS, "BSoftmax, style", n.SETTINGS)


def probe() -> str:
    """The first probe: validation / target / few."""
    folder = f"{n.TUNED}/probe"
    frame = n.table(folder)
    rows = []
    for name in frame.groupby("method")["validation_accuracy"].mean().sort_values(ascending=False).index:
        cells = [name]
        for setting in n.BOTH:
            part = frame[(frame["method"] == name) & (frame["setting"] == setting)]
            values = " / ".join(n.text(100 * part[measure].mean()) for measure in n.SELECTING)
            cells.append("not run" if part.empty else f"{values} (one target)" if len(part) == 1 else values)
        rows.append(cells)
    return n.markdown(["validation / target / few", *n.BOTH], rows)

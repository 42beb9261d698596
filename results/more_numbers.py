"""Numbers in docs/results.md and docs/ndcl-plus.md that no table of `longshift report` has.

    .venv/bin/python results/more_numbers.py

Only runs.parquet files are read. Standard errors over pairs have the divisor n.
"""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

import pandas as pd
from scipy import stats

RESULTS = Path(__file__).parent
SETTINGS = ("TotalHeavyTail", "Duality", "GINIDG")
CELL = ["setting", "target"]
FAR_BEHIND = ("irm", "ldam", "fishr", "ginidg", "samaltdg")


def methods_of(folder: str) -> pd.DataFrame:
    """The runs of a folder with default hyper-parameters, without variants and averaged weights."""
    frame = pd.read_parquet(RESULTS / folder / "runs.parquet")
    return frame[(frame.draw == 0) & ~frame.method.str.contains("[,+_]")]


def paired(
    frame: pd.DataFrame, method: str, other: str, measure: str, settings: tuple[str, ...] = SETTINGS[:2]
) -> pd.Series:
    """Method minus other, defaults, in every target and trial of the settings that both have."""
    part = frame[(frame.draw == 0) & frame.setting.isin(settings)]
    one, two = (part[part.method == name].set_index([*CELL, "trial"])[measure] for name in (method, other))
    return (one - two).dropna()


def mean_and_error(values: pd.Series, digits: int = 1) -> str:
    """Mean, standard error, number."""
    error = values.std(ddof=0) / len(values) ** 0.5
    return f"{values.mean():+.{digits}f} ± {error:.{digits}f} (n = {len(values)})"


def means(frame: pd.DataFrame, setting: str, measure: str = "target_accuracy") -> pd.Series:
    """Mean over targets and trials, by method."""
    return frame[frame.setting == setting].groupby("method")[measure].mean()


def inside_cells(frame: pd.DataFrame, measure: str) -> float:
    """Pearson's r with target accuracy, both minus their means over the runs of the same setting and target."""
    cells = [frame[key] for key in CELL]
    own, goal = frame[measure], frame["target_accuracy"]
    return float((own - own.groupby(cells).transform("mean")).corr(goal - goal.groupby(cells).transform("mean")))


def orders(frame: pd.DataFrame, frozen: pd.DataFrame) -> None:
    """Spearman's rank correlations of orders of the methods."""
    tables = {setting: means(frame, setting) for setting in SETTINGS}
    print("order of the methods, Spearman")
    for one, other in combinations(SETTINGS, 2):
        print(f"  {one} and {other}: {tables[one].corr(tables[other], method='spearman'):.2f}")
    for setting in SETTINGS:
        part = frame[frame.setting == setting]
        targets = part.pivot_table(index="method", columns="target", values="target_accuracy")
        between = [targets[a].corr(targets[b], method="spearman") for a, b in combinations(targets.columns, 2)]
        print(
            f"  {setting}: between targets {min(between):.2f} to {max(between):.2f}; with frozen features "
            f"{tables[setting].corr(means(frozen, setting), method='spearman'):.2f}"
        )


def theory(frame: pd.DataFrame) -> None:
    """What goes with target accuracy, with and without methods that are far behind."""
    parts = {
        "all": frame,
        "without IRM": frame[frame.method != "irm"],
        "without the five far behind": frame[~frame.method.isin(FAR_BEHIND)],
    }
    for measure in ("validation_accuracy", "validation_margin", "posterior_target"):
        print(f"{measure}, r with target accuracy inside (setting, target) cells")
        for name, part in parts.items():
            print(f"  {name}: {inside_cells(part, measure):+.2f}")


def leads(frame: pd.DataFrame) -> None:
    """Validation accuracy ahead of ERM along training."""
    curves = frame.assign(curve=frame.validation_curve.map(lambda text: dict(json.loads(text))))
    print("points of validation accuracy ahead of ERM, by step")
    for setting in SETTINGS:
        part = curves[curves.setting == setting]
        by_step = 100 * pd.DataFrame(list(part.curve), index=part.method).groupby("method").mean()
        for method in ("ndcl", "bsoftmax"):
            ahead = by_step.loc[method] - by_step.loc["erm"]
            print(f"  {method}, {setting}: " + ", ".join(f"{step} {value:+.1f}" for step, value in ahead.items()))


def spread_of_trials(frame: pd.DataFrame) -> None:
    """Standard deviation (n - 1) over trials of a method's average over targets, where there are three."""
    trials = 100 * frame.groupby(["setting", "method", "trial"]).target_accuracy.mean()
    spread = trials.groupby(["setting", "method"]).std().dropna()
    print(f"standard deviation from trial to trial: {spread.min():.1f} to {spread.max():.1f} points")


def plus(series: dict[str, pd.DataFrame]) -> None:
    """NDCL-plus against its neighbours."""
    print("NDCL-plus, TotalHeavyTail and Duality, points")
    for measure in ("validation_accuracy", "target_accuracy", "target_few"):
        pairs = {name: 100 * paired(frame, "ndcl_plus", "bsoftmax", measure) for name, frame in series.items()}
        pairs["all"] = pd.concat(pairs.values())
        print(f"  minus BSoftmax, {measure}: " + ", ".join(f"{n} {mean_and_error(v)}" for n, v in pairs.items()))
    for setting in SETTINGS[:2]:
        gap = 100 * paired(series["frozen"], "ndcl_plus", "ndcl", "target_accuracy", (setting,))
        print(f"  minus ndcl, frozen, {setting}: {mean_and_error(gap)}")
    for other in ("ndcl", "erm"):
        for measure in ("target_accuracy", "target_many"):
            pairs = {name: 100 * paired(frame, "ndcl_plus", other, measure) for name, frame in series.items()}
            print(f"  minus {other}, {measure}: " + ", ".join(f"{n} {mean_and_error(v)}" for n, v in pairs.items()))
    for name, frame in series.items():
        shift = paired(frame, "ndcl_plus", "bsoftmax", "posterior_target")
        print(f"  minus BSoftmax, posterior discrepancy to the target, {name}: {mean_and_error(shift, 4)}")
    ours = series["600 steps"]
    for setting in SETTINGS:
        gap = 100 * paired(ours, "ndcl_plus", "erm", "target_many", (setting,))
        print(f"  minus erm on frequent classes, {setting}: {mean_and_error(gap)}")
    ahead = 100 * paired(ours, "ndcl_plus", "bsoftmax", "target_accuracy")
    print("  minus BSoftmax by trial: " + ", ".join(f"{v:+.1f}" for v in ahead.groupby("trial").mean()))
    print("  minus BSoftmax by case: " + ", ".join(f"{v:+.1f}" for v in ahead.groupby(CELL).mean()))
    named = ["erm", "bsoftmax", "ndcl", "NDCL, domain prior, no con", "ndcl_plus"]
    groups = ours[(ours.setting == "TotalHeavyTail") & ours.method.isin(named)].groupby("method")
    print((100 * groups[["target_many", "target_medium", "target_few"]].mean()).round(1).to_string())
    alone = ours[ours.commit == "311dec4"]  # three processes at a time; of the earlier runs up to six
    print(
        "median seconds of a run: "
        + ", ".join(f"{m} {alone[alone.method == m].seconds_total.median():.1f}" for m in named)
    )


def against_weights(series: dict[str, pd.DataFrame]) -> None:
    """NDCL-plus minus the same with the weights of eq. ce."""
    for name, frame in series.items():
        for measure in ("validation_accuracy", "target_accuracy", "target_many", "target_few"):
            gap = 100 * paired(frame, "ndcl_plus", "NDCL, domain prior, no con", measure)
            print(f"NDCL-plus minus domain prior, no con, {name}, {measure}: {mean_and_error(gap)}")


def tests_over_pairs(frame: pd.DataFrame) -> None:
    """How sure the lead over BSoftmax is, fine-tuned."""
    gap = paired(frame, "ndcl_plus", "bsoftmax", "target_accuracy")
    t, w = stats.ttest_1samp(gap, 0).pvalue, stats.wilcoxon(gap).pvalue
    print(
        f"NDCL-plus minus BSoftmax: ahead in {(gap > 0).sum()}, behind in {(gap < 0).sum()} of {len(gap)} pairs, ",
        end="",
    )
    print(f"t-test p = {t:.2f}, Wilcoxon p = {w:.2f}")


def first_trial(frame: pd.DataFrame) -> None:
    """Average ranks with seeds 0 alone."""
    one = frame[frame.trial == 0].pivot_table(index="method", columns=CELL, values="target_accuracy")
    ranks = one.rank(ascending=False).mean(axis=1).sort_values()
    print("ranks with seeds 0 alone: " + ", ".join(f"{name} {ranks[name]:.1f}" for name in ranks.index[:4]), end="")
    print(f", ndcl {ranks['ndcl']:.1f} (place {1 + int((ranks < ranks['ndcl']).sum())})")


def long_runs(frame: pd.DataFrame, long: pd.DataFrame) -> None:
    """1,800 steps beside the runs of 600 steps with the same seeds."""
    both = long.merge(frame, on=[*CELL, "trial", "method"], suffixes=("", "_short"))
    gap = 100 * (both.target_accuracy - both.target_accuracy_short)
    print(f"1,800 minus 600 steps on targets: {mean_and_error(gap)}; ", end="")
    print(", ".join(f"{name} {value:+.1f}" for name, value in gap.groupby(both.method).mean().items()))
    parts = long.assign(curve=long.validation_curve.map(lambda text: dict(json.loads(text)))).groupby(
        ["method", "setting"]
    )
    for (method, setting), part in parts:
        steps = 100 * pd.DataFrame(list(part.curve)).mean()
        print(
            f"1,800 steps, {method}, {setting}: validation at 600, 1,200, 1,800: "
            f"{', '.join(f'{steps[step]:.1f}' for step in (600, 1200, 1800))}; target at the selected step "
            f"{100 * part.target_accuracy.mean():.1f}, at the last {100 * part.last_target_accuracy.mean():.1f}"
        )
    curves = zip(both.validation_curve.map(json.loads), both.validation_curve_short.map(json.loads), strict=True)
    apart = pd.Series([100 * abs(a[1] - b[1]) for whole, part in curves for a, b in zip(whole, part, strict=False)])
    print(
        f"the same steps run twice, validation: {apart.mean():.1f} points apart on average, {apart.max():.1f} at most"
    )


def trial_by_trial(frame: pd.DataFrame) -> None:
    """NDCL minus ERM in each trial."""
    for setting in SETTINGS:
        trials = 100 * paired(frame, "ndcl", "erm", "target_accuracy", (setting,)).groupby("trial").mean()
        print(f"NDCL minus ERM, {setting}, by trial: " + ", ".join(f"{v:+.1f}" for v in trials))


def priors(study: pd.DataFrame) -> None:
    """Validation accuracy with one of the priors, minus NDCL as printed."""
    for name in ("NDCL, domain prior", "NDCL, global prior"):
        gain = 100 * paired(study, name, "ndcl", "validation_accuracy")
        for setting in SETTINGS[:2]:
            part = gain[gain.index.get_level_values("setting") == setting]
            each = ", ".join(f"{value:+.1f}" for value in part)
            print(f"{name} minus NDCL on validation, {setting}: {mean_and_error(part)}: {each}")
    runs = study[(study.method == "NDCL, global prior") & (study.setting == "TotalHeavyTail")]
    print(
        f"global prior, TotalHeavyTail, validation on frequent classes: least {100 * runs.validation_many.min():.0f} %"
    )


def with_and_without_contrast(study: pd.DataFrame) -> None:
    """What eq. con adds once the counts are in the logits: without it minus with it."""
    pairs = (
        ("NDCL, domain prior, no con", "NDCL, domain prior"),
        ("ndcl_plus", "NDCL, domain prior, no weight, batch negatives"),
    )
    for one, other in pairs:
        for measure in ("validation_accuracy", "target_accuracy", "target_few"):
            print(f"{one} minus {other}, {measure}: {mean_and_error(100 * paired(study, one, other, measure))}")


def changes_without_prior(study: pd.DataFrame) -> None:
    """The changes that might become defaults of NDCL: beside NDCL, and beside the mean of those that do no harm."""
    accuracy = study.pivot_table(index=[*CELL, "trial"], columns="method", values="validation_accuracy")
    gains = 100 * accuracy.sub(accuracy["ndcl"], axis=0).filter(regex="^NDCL, (?!.*prior)")
    harmless = gains.loc[:, gains.mean() > -1]
    print(f"{gains.shape[1]} changes without a prior, {harmless.shape[1]} of them harmless; minus NDCL on validation:")
    for name in harmless.mean().sort_values(ascending=False).index[:6]:
        p = stats.ttest_1samp(harmless[name], 0).pvalue
        print(f"  {name}: {mean_and_error(harmless[name], 2)}, t-test p = {p:.3f}")
    print(f"  all harmless ones: {mean_and_error(harmless.mean(axis=1), 2)}")
    at_less = 100 * paired(
        study, "NDCL, equal weights in a class, alpha 0.01", "NDCL, alpha 0.01", "validation_accuracy"
    )
    print(f"  equal weights in a class, both with alpha 0.01: {mean_and_error(at_less, 2)}")


def twenty_trials(changes: pd.DataFrame, preset: pd.DataFrame) -> None:
    """Two changes to NDCL, and NDCL-plus, minus NDCL or BSoftmax on frozen features, seeds 0 to 19."""
    both = pd.concat([changes, preset])
    rows = [(name, "ndcl") for name in sorted(changes.method.unique()) if name != "ndcl" and "+" not in name]
    for one, other in (*rows, ("ndcl_plus", "ndcl"), ("ndcl_plus", "bsoftmax")):
        for measure in ("validation_accuracy", "target_accuracy", "target_many", "target_few"):
            gap = 100 * paired(both, one, other, measure)
            each = [f"{name} {mean_and_error(gap[name], 2)}" for name in SETTINGS[:2]]
            later = gap[gap.index.get_level_values("trial") > 2]
            print(f"twenty trials, {one} minus {other}, {measure}: both {mean_and_error(gap, 2)}, ", end="")
            print(", ".join([*each, f"seeds 3 to 19 {mean_and_error(later, 2)}"]))
    gap = 100 * paired(both, "NDCL, equal weights in a class, beta 1", "ndcl", "target_accuracy")["TotalHeavyTail"]
    on_sketch = gap.index.get_level_values("target") == "sketch"
    print(f"both changes, TotalHeavyTail: sketch {mean_and_error(gap[on_sketch])}, ", end="")
    print(f"other targets {mean_and_error(gap[~on_sketch])}")


def main() -> None:
    """Print all of it."""
    folders = {"600 steps": "pacs-mobilenetv2", "300 steps": "pacs-mobilenetv2/five-at-224px", "frozen": "pacs-frozen"}
    series = {name: pd.read_parquet(RESULTS / folder / "runs.parquet") for name, folder in folders.items()}
    frame = methods_of("pacs-mobilenetv2")
    orders(frame, methods_of("pacs-frozen"))
    theory(series["600 steps"])
    leads(frame)
    for name in ("600 steps", "300 steps"):
        five = series[name]
        spread_of_trials(five[~five.method.str.contains("+", regex=False)])
    trial_by_trial(frame)
    first_trial(frame)
    long_runs(series["600 steps"], pd.read_parquet(RESULTS / "pacs-mobilenetv2" / "long" / "runs.parquet"))
    for folder in ("pacs-mobilenetv2", "pacs-frozen"):
        print(f"{folder}/study")
        priors(pd.read_parquet(RESULTS / folder / "study" / "runs.parquet"))
    fine_tuned = pd.read_parquet(RESULTS / "pacs-mobilenetv2" / "study" / "runs.parquet")
    with_and_without_contrast(fine_tuned)
    changes_without_prior(fine_tuned)
    frozen = RESULTS / "pacs-frozen"
    twenty_trials(*(pd.read_parquet(frozen / name / "runs.parquet") for name in ("defaults", "twenty-trials")))
    plus(series)
    tests_over_pairs(series["600 steps"])
    against_weights({**series, "frozen": pd.read_parquet(RESULTS / "pacs-frozen" / "candidates" / "runs.parquet")})


if __name__ == "__main__":
    main()

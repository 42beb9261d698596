"""Numbers in docs/results.md about the fine-tuned runs that no table of `longshift report` has.

    python results/more_numbers.py

Methods alone, without variants; only runs.csv files are read.
"""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

import pandas as pd

RESULTS = Path(__file__).parent
SETTINGS = ("TotalHeavyTail", "Duality", "GINIDG")
CELL = ["setting", "target"]
FAR_BEHIND = ("irm", "ldam", "fishr", "ginidg", "samaltdg")


def methods_of(folder: str) -> pd.DataFrame:
    """The runs of a folder with default hyper-parameters, without variants and averaged weights."""
    frame = pd.read_csv(RESULTS / folder / "runs.csv")
    return frame[(frame.draw == 0) & ~frame.method.str.contains("[,+]")]


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
    """Standard deviation (n - 1) over trials of a method's average over targets."""
    trials = 100 * frame.groupby(["setting", "method", "trial"]).target_accuracy.mean()
    spread = trials.groupby(["setting", "method"]).std()
    print(f"standard deviation from trial to trial: {spread.min():.1f} to {spread.max():.1f} points")


def main() -> None:
    """Print all of it."""
    every = pd.read_csv(RESULTS / "pacs-mobilenetv2" / "runs.csv")
    frame = methods_of("pacs-mobilenetv2")
    orders(frame, methods_of("pacs-frozen"))
    theory(every)
    leads(frame)
    five = pd.read_csv(RESULTS / "pacs-mobilenetv2" / "five-at-224px" / "runs.csv")
    spread_of_trials(five[~five.method.str.contains("+", regex=False)])


if __name__ == "__main__":
    main()

"""Numbers of the published runs as text: means, paired differences, correlations. `docs_tables.py` arranges them."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

from longshift.analysis import rank_table
from longshift.paper import overall_results
from longshift.report import build_tables, method_title
from longshift.sweep import averages, choose, read_runs, standard_error
from longshift.text import decimal

RESULTS = Path(__file__).parent
TUNED, LARGE, FROZEN = "pacs-mobilenetv2", "pacs-mobilenetv2/five-at-224px", "pacs-frozen"
TAIL, DUALITY, GINIDG = SETTINGS = ("TotalHeavyTail", "Duality", "GINIDG")
BOTH = (TAIL, DUALITY)
CHOICE, FINALISTS, CONFIRM = f"{TUNED}/style-choice", f"{TUNED}/style-choice/finalists", f"{TUNED}/style-confirm"
OTHERS, EFFICIENT = f"{TUNED}/style-for-others", "pacs-efficientnet"
UNSTYLED = "NDCL-plus, no style"  # what NDCL-plus was before style mixing
ACCURACY = ("target_accuracy", "target_few")
SELECTING = ("validation_accuracy", *ACCURACY)
FOUR = ("validation_accuracy", "target_accuracy", "target_many", "target_few")
PAIR = ["setting", "target", "trial"]
SERIES = {"600 steps, 160 px": TUNED, "300 steps, 224 px": LARGE, "frozen features": FROZEN}
NO_CON = "NDCL, domain prior, no con"


@functools.cache
def table(folder: str) -> pd.DataFrame:
    """All runs of a folder under results/."""
    return read_runs(RESULTS / folder / "runs.parquet")


@functools.cache
def chosen(folder: str, draws: int = 1) -> pd.DataFrame:
    """The runs that count, selected by validation accuracy: by default those with default hyper-parameters."""
    frame = table(folder)
    return choose(frame[frame["draw"] < draws])


@functools.cache
def _averages(folder: str, draws: int) -> pd.DataFrame:
    measures = [f"target_{group}" for group in ("accuracy", "many", "medium", "few")]
    return averages(chosen(folder, draws), measures).set_index(["setting", "method"])


def methods(folder: str) -> list[str]:
    """The rows of a folder in the order of the file, without averaged weights."""
    return [name for name in table(folder)["method"].unique() if "+" not in name]


def published_methods(folder: str) -> list[str]:
    """The 24 methods of the paper: neither presets, variants nor averaged weights."""
    return [name for name in methods(folder) if "," not in name and "_" not in name]


def text(value: float, error: float = float("nan"), digits: int = 1, sign: bool = False) -> str:
    """`53.3 ± 0.3`; without the standard error where there is none."""
    number = decimal(value, digits, sign)
    return number if pd.isna(error) else f"{number} ± {error:.{digits}f}"


def mean(folder: str, method: str, setting: str, measure: str, draws: int = 1) -> str:
    """Percent: averaged over targets in each trial, then mean and standard error over trials."""
    found = _averages(folder, draws)
    return text(100 * found[measure][setting, method], 100 * found[f"{measure}_stderr"][setting, method])


def plain_mean(folder: str, method: str, setting: str, measure: str) -> str:
    """Percent, mean over targets and trials."""
    return text(100 * _averages(folder, 1)[measure][setting, method])


@functools.cache
def _by_method(folder: str, measure: str, draws: int) -> pd.DataFrame:
    """Percent: a row per setting, target and trial, a column per method."""
    values = chosen(folder, draws).set_index([*PAIR, "method"])[measure]
    return 100 * values.unstack("method")


def gaps(
    folder: str, method: str, other: str, measure: str, settings: Iterable[str] = BOTH, draws: int = 1
) -> pd.Series[float]:
    """Points that a method is ahead of another, in each setting, target and trial that both have."""
    return gaps_between((folder, method), (folder, other), measure, settings, draws)


def gaps_between(
    one: tuple[str, str], other: tuple[str, str], measure: str, settings: Iterable[str] = BOTH, draws: int = 1
) -> pd.Series[float]:
    """`gaps` of two methods, each given with the folder of its runs."""
    first, second = (_by_method(folder, measure, draws)[method] for folder, method in (one, other))
    found = (first - second).dropna()
    return found[found.index.get_level_values("setting").isin(list(settings))]


def gap(
    folder: str, method: str, other: str, measure: str, settings: Iterable[str] = BOTH, draws: int = 1, digits: int = 1
) -> str:
    """Mean and standard error of `gaps`."""
    return spread(gaps(folder, method, other, measure, settings, draws), digits)


def spread(values: pd.Series[float], digits: int = 1) -> str:
    """Mean and standard error of differences, with divisor n - 1 as in the tests of them."""
    return text(float(values.mean()), standard_error(values, ddof=1), digits, sign=True)


def pair_title(method: str, other: str) -> str:
    """`NDCL - ERM`."""
    return f"{method_title(method)} - {method_title(other)}"


def cases(folder: str, extra: Sequence[str] = (), index: Sequence[str] = ("setting", "target")) -> pd.DataFrame:
    """Target accuracy of the 24 methods and of others: a row per setting and target, a column per method.

    Only trials that all of them have count: methods with more trials would otherwise be compared on other seeds.
    """
    part = _common_trials(folder, [*published_methods(folder), *extra])
    return part.pivot_table(index=list(index), columns="method", values="target_accuracy")


def ranks(folder: str, extra: Sequence[str] = ()) -> pd.Series[float]:
    """Average rank of the 24 methods, and of others, over settings and targets."""
    return average_ranks(cases(folder, extra))


def average_ranks(scores: pd.DataFrame) -> pd.Series[float]:
    """Average rank of each column over the rows; means of equal accuracies tie, whatever their rounding errors."""
    return rank_table(scores).mean()


def _common_trials(folder: str, names: Sequence[str]) -> pd.DataFrame:
    frame = chosen(folder)
    part = frame[frame["method"].isin(names)]
    runs = part.groupby("trial").size()
    return part[part["trial"].isin(runs[runs == runs.max()].index)]


def order(folder: str, setting: str, target: str | None = None) -> pd.Series[float]:
    """Target accuracy of the 24 methods in a setting, over the trials that all of them have."""
    frame = _common_trials(folder, published_methods(folder))
    part = frame[frame["setting"] == setting]
    part = part if target is None else part[part["target"] == target]
    # Means of equal accuracies are ties, whatever their rounding errors.
    return part.groupby("method")["target_accuracy"].mean().round(9)


def curves(folder: str, setting: str, method: str | None = None) -> pd.DataFrame:
    """Validation accuracy in percent: a row per run, a column per step."""
    frame = table(folder)
    part = frame[(frame["setting"] == setting) & (frame["draw"] == 0) & ~frame["method"].str.contains("+", regex=False)]
    part = part if method is None else part[part["method"] == method]
    return 100 * pd.DataFrame([dict(json.loads(line)) for line in part["validation_curve"]])


@functools.cache
def correlations(folder: str) -> dict[str, dict[str, float]]:
    """Pearson's r with target accuracy, as `longshift report --table theory` gives it: by quantity, then by points."""
    frame = table(folder)
    found: dict[str, dict[str, float]] = {}
    for one in build_tables(frame[frame["draw"] == 0], ["theory"]):
        for row in one.rows:
            quantity, _, points = row.name.partition(": ")
            found.setdefault(quantity, {})[points] = row.cells[1].value or 0.0
    return found


def bold_best(rows: Sequence[list[str]], columns: Iterable[int]) -> list[list[str]]:
    """The rows with the best mean of each column in bold; numbers without a standard error do not take part."""
    for column in columns:
        there = [row for row in rows if "±" in row[column]]
        best = max(float(row[column].split()[0]) for row in there)
        for row in there:
            if float(row[column].split()[0]) == best:
                row[column] = f"**{row[column]}**"
    return list(rows)


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; `|` does not occur in names."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def gap_to_erm(folder: str, method: str, setting: str) -> str:
    """The paired difference from ERM in target accuracy, if the method was run."""
    found = gaps(folder, method, "erm", "target_accuracy", (setting,))
    return spread(found) if len(found) else "not run"


def pairs_of_means(folder: str, method: str, settings: Iterable[str], draws: int = 1) -> list[str]:
    """Target accuracy of all and of few-shot classes under each setting."""
    return [mean(folder, method, setting, measure, draws) for setting in settings for measure in ACCURACY]


def with_few(settings: Iterable[str]) -> list[str]:
    """The heads of the columns of `pairs_of_means`."""
    return [cell for setting in settings for cell in (setting, "few")]


@functools.cache
def published_means(setting: str) -> pd.Series[float]:
    """The paper's averages on PACS by method."""
    found = overall_results()
    part = found[(found["dataset"] == "PACS") & (found["setting"] == setting) & (found["group"] == "average")]
    return part.set_index("method")["mean"]


def paper_mean(method: str, setting: str) -> str:
    """The paper's average of a method on PACS; "-" if it has none."""
    values = published_means(setting)
    return text(values[method]) if method in values.index else "-"

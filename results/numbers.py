"""Numbers of the published runs as text: means, paired differences, correlations. `results.tables` arranges them."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd
from scipy import stats

from longshift.analysis import rank_table
from longshift.paper import overall_results
from longshift.report import build_tables, method_title
from longshift.sweep import averages, choose, read_runs
from longshift.text import decimal

RESULTS = Path(__file__).parent
TUNED, FROZEN = "pacs-mobilenetv2", "pacs-frozen"
CONFIRM, OTHERS, EFFICIENT = f"{TUNED}/style-confirm", f"{TUNED}/style-for-others", "pacs-efficientnet"
TAIL, DUALITY, GINIDG = SETTINGS = ("TotalHeavyTail", "Duality", "GINIDG")
BOTH = (TAIL, DUALITY)
UNSTYLED = "NDCL-plus, no style"  # what NDCL-plus was before style mixing
TARGET, FEW, BALANCED = "target_accuracy", "target_few", "target_balanced"
VALIDATION = "validation_accuracy"
PAIR = ["setting", "target", "trial"]


@functools.cache
def table(folder: str) -> pd.DataFrame:
    """All runs of a folder under results/."""
    return read_runs(RESULTS / folder / "runs.parquet")


@functools.cache
def chosen(folder: str) -> pd.DataFrame:
    """The runs with default hyper-parameters; validation selected their weights."""
    frame = table(folder)
    return choose(frame[frame["draw"] == 0])


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


@functools.cache
def _averages(folder: str) -> pd.DataFrame:
    return 100 * averages(chosen(folder), [TARGET]).set_index(["setting", "method"])


def mean(folder: str, method: str, setting: str) -> str:
    """Percent: averaged over targets in each trial, then mean and standard error over trials."""
    found = _averages(folder)
    return text(found[TARGET][setting, method], found[f"{TARGET}_stderr"][setting, method])


@functools.cache
def by_method(folder: str, measure: str, dataset: str = "") -> pd.DataFrame:
    """Percent: a row per setting, target and trial (of one dataset, if it is named), a column per method."""
    frame = chosen(folder)
    frame = frame[frame["dataset"] == dataset] if dataset else frame
    return 100 * frame.set_index([*PAIR, "method"])[measure].unstack("method")


def site_mean(folder: str, dataset: str, method: str, measure: str) -> float:
    """Percent: the mean over the targets of one dataset, of each over its trials."""
    return float(by_method(folder, measure, dataset)[method].groupby("target").mean().mean())


def fit_mixes(gain: pd.Series[float], validation: pd.Series[float]) -> pd.Series[bool]:
    """Whether `fit` would mix styles for each target: if the runs for the other targets gain by it.

    Their gain is that at their targets and that on their validation samples.
    """
    both = gain + validation
    return both.groupby(["setting", "trial"]).transform("sum") - both > 0


def gaps(
    one: tuple[str, str], other: tuple[str, str], measure: str = TARGET, settings: Iterable[str] = BOTH
) -> pd.Series[float]:
    """Points that a method is ahead of another in each setting, target and trial; both come with their folder."""
    first, second = (by_method(folder, measure)[method] for folder, method in (one, other))
    found = (first - second).dropna()
    return found[found.index.get_level_values("setting").isin(list(settings))]


def interval(values: pd.Series[float], digits: int = 1) -> str:
    """`+4.7 (+2.6 to +6.7)`: the mean of differences with its 95 % interval (Student's t)."""
    low, high = stats.t.interval(0.95, len(values) - 1, loc=values.mean(), scale=stats.sem(values))
    mean, lower, upper = (decimal(float(value), digits, True) for value in (values.mean(), low, high))
    return f"{mean} ({lower} to {upper})"


def gap(folder: str, method: str, other: str, measure: str = TARGET, settings: Iterable[str] = BOTH) -> str:
    """The interval of the gaps of two methods of a folder."""
    return interval(gaps((folder, method), (folder, other), measure, settings))


def ahead(values: pd.Series[float]) -> str:
    """`20 of 24`: in how many pairs a method is ahead."""
    return f"{(values > 0).sum()} of {len(values)}"


def pair_title(method: str, other: str) -> str:
    """`NDCL - ERM`."""
    return f"{method_title(method)} - {method_title(other)}"


def cases(folder: str, extra: Sequence[str] = (), index: Sequence[str] = ("setting", "target")) -> pd.DataFrame:
    """Target accuracy of the 24 methods and of others: a row per setting and target, a column per method."""
    frame = chosen(folder)
    part = frame[frame["method"].isin([*published_methods(folder), *extra])]
    return part.pivot_table(index=list(index), columns="method", values=TARGET)


def average_ranks(scores: pd.DataFrame) -> pd.Series[float]:
    """Average rank of each column over the rows; means of equal accuracies tie, whatever their rounding errors."""
    return rank_table(scores).mean()


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


@functools.cache
def published_means(setting: str) -> pd.Series[float]:
    """The paper's averages on PACS by method."""
    found = overall_results()
    part = found[(found["dataset"] == "PACS") & (found["setting"] == setting) & (found["group"] == "average")]
    return part.set_index("method")["mean"]


def paper_mean(method: str, setting: str) -> str:
    """The paper's average of a method on PACS; `-` if it has none."""
    values = published_means(setting)
    return text(values[method]) if method in values.index else "-"


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; `|` does not occur in names."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)

"""Select runs and average them. Pure functions on the table that `collect` returns.

Selection rules (every table names its rule):
  validation  the step and the draw with the best accuracy on the balanced validation set of the training domains.
              This is the protocol's rule and the only one that uses nothing of the target.
  last        the weights of the last step; the draw with the best validation accuracy at the last step.
  oracle      the step and the draw with the best accuracy on the target itself: an upper bound, not a result.

Where the validation set could not be balanced (a class has too few samples, or a domain lacks it), validation accuracy
means the mean of the class accuracies, for steps and for draws; on natural data, the mean over cells (domain, class).

In each trial the best draw counts; then follow mean and standard error over trials. An average over targets is taken
within each trial first. Runs that diverged or failed are never candidates; they are counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
import pandas as pd

from longshift.errors import LongshiftError, UsageError, unknown_name
from longshift.sweep.columns import BALANCED, MEASURES

Rule = Literal["validation", "last", "oracle"]
RULES: tuple[Rule, ...] = get_args(Rule)
CELL = ["dataset", "setting", "target", "method"]
TABLE = ["dataset", "setting", "method"]


def choose(frame: pd.DataFrame, rule: Rule = "validation") -> pd.DataFrame:
    """Choose the best draw of each trial.

    Args:
        frame: A table of runs, as `read_runs` or `collect` returns it.
        rule: "validation" (the protocol), "last" or "oracle".

    Returns:
        One row per dataset, setting, target, method and trial, with `rule`, the chosen `draw`, `step` and
        `fingerprint`,
        `candidates` (draws that count), `diverged` and `missing` (draws that do not), and the measures at the chosen
        step
        ("oracle": the target's only). Among equal draws the lowest number wins. A trial without candidates has a row
        without numbers.

    Raises:
        UsageError: The rule is unknown.
        LongshiftError: The rule is "oracle", and the target was not evaluated during training.

    Example:
        >>> chosen = choose(read_runs("runs.parquet"))  # doctest: +SKIP
    """
    if rule not in RULES:
        raise UsageError(unknown_name("selection rule", rule, RULES))
    good = frame[frame["status"] == "done"]
    good = good.assign(score=_score(good, rule))
    if rule == "oracle" and len(good) and good["score"].isna().all():
        raise LongshiftError(
            'no oracle numbers: the target was not evaluated during training. Run the sweep with evaluate = "full" '
            "under [run]."
        )
    good = good[good["score"].notna()]
    keys = [*CELL, "trial"]
    best = _best(good, keys, ["draw"]).set_index(keys)
    lost = frame[keys].assign(
        diverged=frame["status"] == "diverged", missing=~frame["status"].isin(["done", "diverged"])
    )
    chosen = lost.groupby(keys, observed=True, sort=True).sum()
    candidates = good.groupby(keys, observed=True).size().reindex(chosen.index, fill_value=0)
    chosen.insert(0, "candidates", candidates)
    chosen.insert(0, "rule", rule)
    chosen["draw"] = best["draw"]
    chosen["fingerprint"] = best["fingerprint"]
    chosen["step"] = best[{"validation": "selected_step", "last": "steps", "oracle": "oracle_step"}[rule]]
    prefix = {"validation": "", "last": "last_", "oracle": "oracle_"}[rule]
    numbers = best.reindex(columns=[prefix + name for name in MEASURES]).set_axis(list(MEASURES), axis="columns")
    return chosen.join(numbers).reset_index()


def _best(runs: pd.DataFrame, keys: list[str], ties: list[str]) -> pd.DataFrame:
    """The run with the highest score of each group; among equals, the first by `ties`."""
    rising = [True] * len(keys) + [False] + [True] * len(ties)
    return runs.sort_values([*keys, "score", *ties], ascending=rising, kind="stable").drop_duplicates(keys)


def _score(runs: pd.DataFrame, rule: Rule) -> pd.Series[float]:
    """The score that ranks draws. A table whose runs lack the mean of class accuracies has the plain accuracy."""
    if rule == "oracle":
        return runs["oracle_target_accuracy"]
    prefix = "last_" if rule == "last" else ""
    accuracy = runs[f"{prefix}validation_accuracy"]
    return runs[prefix + BALANCED].fillna(accuracy).round(12)  # as in training: rounding errors do not break ties


def per_target(chosen: pd.DataFrame, measures: Sequence[str] = MEASURES) -> pd.DataFrame:
    """Mean and standard error over trials for each dataset, setting, target and method.

    Columns: keys, `rule`, `trials` (with numbers), `trials_missing`, `runs` (that the best were chosen from),
    `diverged`, `missing`, and for each measure `NAME` and `NAME_stderr`.
    """
    return _over_trials(chosen.assign(runs=chosen["candidates"]), CELL, measures)


def averages(chosen: pd.DataFrame, measures: Sequence[str] = MEASURES) -> pd.DataFrame:
    """Average over targets within each trial, then over trials.

    A trial counts only if it has numbers for every target of its dataset and setting: a mean over some of the targets
    is not comparable.

    Args:
        chosen: What `choose` returns.
        measures: The columns to average.

    Returns:
        One row per dataset, setting and method: each measure, its standard error (`..._stderr`), `trials`, and in
        `trials_missing` the number of trials that do not count.

    Example:
        >>> averages(chosen)[["method", "target_accuracy", "target_accuracy_stderr"]]  # doctest: +SKIP
    """
    targets = chosen.groupby(["dataset", "setting"], observed=True)["target"].transform("nunique")
    chosen = chosen.assign(targets=targets, measured=chosen["candidates"] > 0, runs=chosen["candidates"])
    groups = chosen.groupby([*TABLE, "trial"], observed=True, sort=True)
    means = groups[["rule", "targets"]].first().join(groups[["runs", "diverged", "missing", "measured"]].sum())
    # A target without e.g. few-shot classes has no such number.
    means = means.join(groups[list(measures)].mean()).reset_index()
    complete = means["measured"] == means["targets"]
    means["candidates"] = complete.astype(int)
    means["runs"] = means["runs"].where(complete, 0)
    means.loc[~complete, list(measures)] = np.nan
    return _over_trials(means, TABLE, measures)


def _over_trials(frame: pd.DataFrame, keys: list[str], measures: Sequence[str]) -> pd.DataFrame:
    known = frame["candidates"] > 0
    groups = frame.assign(trials=known, trials_missing=~known).groupby(keys, observed=True, sort=True)
    counts = groups[["trials", "trials_missing", "runs", "diverged", "missing"]].sum()
    numbers = groups[list(measures)].agg(["mean", standard_error])
    numbers.columns = pd.Index([name for measure in measures for name in (measure, f"{measure}_stderr")])
    return groups[["rule"]].first().join(counts).join(numbers).reset_index()


def standard_error(values: pd.Series[float], ddof: int = 0) -> float:
    """Standard deviation with divisor n - ddof over the square root of n; NaN below two values.

    Means over trials have divisor n, as in the published tables: with three trials, that is 0.82 times the unbiased
    estimate. Differences have ddof=1, as in significance tests of them.
    """
    present = values.dropna()
    return float(present.std(ddof=ddof) / np.sqrt(len(present))) if len(present) > 1 else float("nan")


def best_runs(frame: pd.DataFrame) -> pd.DataFrame:
    """The run with the best validation accuracy of each dataset, setting, target and method, over trials and draws."""
    good = frame[(frame["status"] == "done") & frame["validation_accuracy"].notna()]
    best = _best(good.assign(score=_score(good, "validation")), CELL, ["trial", "draw"])
    return best.drop(columns="score").reset_index(drop=True)

"""Who won, by how much, and how sure that is: numbers for the summary and the rank diagram."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
from scipy import stats

from longshift.analysis.significance import (
    Friedman,
    friedman,
    nemenyi_critical_difference,
    rank_groups,
    rank_table,
)
from longshift.report.names import order_methods
from longshift.report.table import number
from longshift.sweep.selection import averages, per_target, standard_error

SURE = 0.05


@dataclass(frozen=True)
class Significance:
    """The Friedman test over all cases, and which ranks lie too close to tell apart."""

    test: Friedman
    critical_difference: float
    groups: tuple[tuple[str, ...], ...]

    @property
    def differs(self) -> bool:
        """Whether the methods differ at all."""
        return self.test.f_p < SURE

    def worse_than(self, method: str) -> list[str]:
        """Methods whose rank is worse by more than the critical difference."""
        own = self.test.ranks[method]
        return [name for name, rank in self.test.ranks.items() if rank - own > self.critical_difference]


@dataclass(frozen=True)
class Standing:
    """Methods from best to worst by average rank over the cases they all have."""

    order: tuple[str, ...]
    mean: dict[str, float]  # target accuracy in [0, 1], averaged over cases
    firsts: dict[str, int]  # comparisons (dataset and setting) where the method is first
    comparisons: int
    cases: int  # (dataset, setting, target)
    comparable: bool  # whether the ranked methods have numbers for the same cases
    lead: float | None  # of the first over the second
    lead_stderr: float | None
    lead_p: float | None  # of a paired t-test over trials
    significance: Significance | None
    why_not: str  # why there is no test

    @property
    def winner(self) -> str:
        """The method with the best average rank."""
        return self.order[0]


def standing(chosen: pd.DataFrame) -> Standing:
    """From the chosen runs (`selection.choose`): methods without a number for every case are not ranked first."""
    single = per_target(chosen, ["target_accuracy"])
    scores = single.set_index(["dataset", "setting", "target", "method"])["target_accuracy"].unstack("method")
    scores = scores.dropna(axis=1, how="all").dropna(axis=0, how="all")
    scores = scores[order_methods(str(name) for name in scores.columns)]
    complete = scores.dropna(axis=1)
    if complete.empty:  # no method has everything: compare on the cases that all have
        complete = scores.dropna(axis=0)
    usable = complete if not complete.empty else scores
    same = not usable.isna().any().any()
    mean = {str(name): float(usable[name].mean()) for name in usable.columns}
    if len(usable.columns) > 1 and same and len(usable) > 1:
        ranks = rank_table(usable).mean()
        order = sorted(mean, key=lambda name: (float(ranks[name]), -mean[name]))
    else:
        order = sorted(mean, key=lambda name: -mean[name])
    together = averages(chosen, ["target_accuracy"])
    firsts = dict.fromkeys(order, 0)
    comparisons = 0
    for _, part in together.groupby(["dataset", "setting"]):
        values = part.set_index("method")["target_accuracy"].dropna()
        comparisons += bool(len(values))
        for name in values.index[values.round(3) == values.round(3).max()] if len(values) else []:
            firsts[str(name)] = firsts.get(str(name), 0) + 1
    lead = _lead(chosen, order)
    found, why = significance(complete)
    return Standing(tuple(order), mean, firsts, comparisons, len(usable), same, *lead, found, why)


def significance(scores: pd.DataFrame) -> tuple[Significance | None, str]:
    """Friedman and Nemenyi on cases x methods without gaps, or the reason why not."""
    cases, methods = scores.shape
    if methods < 2:
        return None, "fewer than two methods have all their runs, so there is nothing to test"
    if cases < 2:
        return None, f"a test over cases (dataset, setting and target) needs at least 2, found {cases}"
    test = friedman(scores)
    difference = nemenyi_critical_difference(methods, cases, SURE)
    return Significance(test, difference, rank_groups(test.ranks, difference)), ""


def _lead(chosen: pd.DataFrame, order: Sequence[str]) -> tuple[float | None, float | None, float | None]:
    """Mean difference of the first two, its standard error over trials, and p of a t-test (same splits: paired)."""
    if len(order) < 2:
        return None, None, None
    first, second = (
        chosen[chosen["method"] == name].set_index(["dataset", "setting", "target", "trial"])["target_accuracy"]
        for name in order[:2]
    )
    by_trial = (first - second).dropna().groupby("trial").mean()
    if by_trial.empty:
        return None, None, None
    values = by_trial.to_numpy(dtype=float)
    p = number(stats.ttest_1samp(values, 0.0).pvalue) if len(values) > 1 and values.std() > 0 else None
    return float(values.mean()), number(standard_error(by_trial)), p

"""Who won, by how much, and how sure that is: numbers for the summary and the rank diagram."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pandas as pd
from scipy import stats

from longshift.analysis import Friedman, friedman, nemenyi_critical_difference, rank_groups, rank_table
from longshift.report.table import float_or_none
from longshift.report.titles import is_averaged, is_variant, order_methods
from longshift.sweep import per_target, standard_error

SURE = 0.05
ROUNDING = 1e-12  # differences of accuracies that only rounding errors make
PLACE = ["dataset", "setting", "target"]
RankedRows = Literal["methods", "variants"]  # who is ranked: methods; and their variants
NoTest = Literal["", "one method", "one case", "no common trial"]


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
class Lead:
    """How far one method is ahead of another: mean over the trials that all ranked methods have, on the same splits."""

    mean: float
    stderr: float | None  # over trials; None with one trial
    p: float | None  # of a paired t-test over trials
    other_stderr: float | None  # of the other method's own mean

    @property
    def sure(self) -> bool:
        """Whether trials hardly differ so much by chance."""
        return self.p is not None and self.p < SURE

    @property
    def within_error(self) -> bool:
        """Whether it is no more than a standard error, of the difference or of the other's number."""
        return self.mean <= ROUNDING or self.mean <= max(self.stderr or 0.0, self.other_stderr or 0.0)


@dataclass(frozen=True)
class Ranking:
    """Methods from best to worst by average rank over the cases and trials that they all have."""

    order: tuple[str, ...]
    mean: dict[str, float]  # target accuracy in [0, 1], averaged over cases
    cases: int  # (dataset, setting, target)
    comparable: bool  # whether the ranked methods have numbers for the same cases, from the same trials
    left_out: tuple[str, ...]  # methods that are not ranked: they lack cases or trials
    unranked: tuple[str, ...]  # rows that were not to be ranked: averaged weights, or variants too
    cases_left_out: int  # cases that too many methods lack
    leads: dict[str, Lead]  # of the first over each other method
    level: tuple[str, ...]  # methods that the first is not ahead of by more than a standard error
    above: tuple[str, ...]  # methods with a mean above the first by more than a standard error
    significance: Significance | None
    no_test: NoTest  # why there is no test
    trials_left_out: int  # trials of a case that some ranked methods lack
    runs: pd.DataFrame = field(repr=False, compare=False)  # the chosen runs that are ranked

    @property
    def winner(self) -> str:
        """The method with the best average rank."""
        return self.order[0]

    @property
    def rival(self) -> str:
        """The method that the first must be compared with: one with a higher mean, else a tied one, else the second."""
        if self.above:
            return max(self.above, key=lambda name: self.mean[name])
        return next(iter(self.level), self.order[min(1, len(self.order) - 1)])

    @property
    def lead(self) -> Lead | None:
        """How far the first is ahead of its rival."""
        return self.leads.get(self.rival)


def rank_methods(chosen: pd.DataFrame, among: RankedRows = "variants") -> Ranking:
    """From the chosen runs (`selection.choose`); only methods, cases and trials without gaps are ranked and tested.

    A method with other trials than the rest would be compared on other splits, so that only trials that all ranked
    methods have count. Averaged weights are other weights of the same runs: ranked next to their own method, they would
    push other methods down.
    """
    names = order_methods(str(name) for name in chosen["method"].unique())
    unranked = tuple(name for name in names if is_averaged(name) or (among == "methods" and is_variant(name)))
    kept = chosen[~chosen["method"].isin(unranked)]
    chosen, unranked = (kept, unranked) if kept["target_accuracy"].notna().any() else (chosen, ())
    single = per_target(chosen, ["target_accuracy"])
    scores = single.set_index([*PLACE, "method"])["target_accuracy"].unstack("method")
    scores = scores.dropna(axis=1, how="all").dropna(axis=0, how="all")
    scores = scores[order_methods(str(name) for name in scores.columns)]
    complete = methods_first(scores)
    shared, lost = common_trials(chosen, complete)
    same = shared.shape[1] >= min(2, scores.shape[1]) and len(shared) > 0
    usable = shared.groupby(level=PLACE, sort=False).mean() if same else scores
    ranked = chosen[chosen["method"].isin(usable.columns)]
    if same:
        ranked = ranked[pd.MultiIndex.from_frame(ranked[[*PLACE, "trial"]]).isin(shared.index)]
    mean = {str(name): float(usable[name].mean()) for name in usable.columns}
    if len(usable.columns) > 1 and same and len(usable) > 1:
        ranks = rank_table(usable).mean()
        order = sorted(mean, key=lambda name: (float(ranks[name]), -mean[name]))
    else:
        order = sorted(mean, key=lambda name: -mean[name])
    leads = {name: _lead(shared[order[0]], shared[name]) for name in order[1:]} if same else {}
    level = tuple(name for name, lead in leads.items() if lead.within_error)
    above = tuple(name for name, lead in leads.items() if lead.mean < -(lead.stderr or 0.0) - ROUNDING)
    why: NoTest
    if same or complete.shape[1] < 2:
        found, why = significance(usable if same else complete)
    else:
        found, why = None, "no common trial"
    left = tuple(str(name) for name in scores.columns if name not in usable.columns)
    return Ranking(
        tuple(order), mean, len(usable), same, left, unranked, len(scores) - len(usable),
        leads, level, above, found, why, lost if same else 0, ranked,
    )  # fmt: skip


def common_trials(chosen: pd.DataFrame, scores: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """Accuracy of methods in the trials that all have, and how many are left out.

    A variant that lacks one of the methods' common trials is left out itself: it never costs the methods a trial.

    Args:
        chosen: Chosen runs.
        scores: Cases x methods without gaps, which say what is compared.

    Returns:
        A row per case and trial, a column per method; and how many such rows some methods lack.
    """
    part = chosen[chosen["method"].isin(scores.columns)]
    part = part[pd.MultiIndex.from_frame(part[PLACE]).isin(scores.index)]
    table = part.set_index([*PLACE, "trial", "method"])["target_accuracy"].unstack("method").dropna(how="all")
    table = table[list(scores.columns)]
    plain = [name for name in table.columns if not is_variant(str(name))]
    shared = table.dropna(subset=plain if len(plain) > 1 else list(table.columns))
    shared = shared.dropna(axis=1)
    return shared, len(table[list(shared.columns)].dropna(how="all")) - len(shared)


def methods_first(scores: pd.DataFrame) -> pd.DataFrame:
    """Without gaps; variants that were run in some of the cases only never cost the methods a case."""
    plain = without_gaps(scores[[name for name in scores.columns if not is_variant(str(name))]])
    if plain.shape[1] < 2:
        return without_gaps(scores)
    there = scores.loc[plain.index]
    full = [name for name in there.columns if is_variant(str(name)) and there[name].notna().all()]
    return there[[name for name in there.columns if name in plain.columns or name in full]]


def without_gaps(scores: pd.DataFrame) -> pd.DataFrame:
    """Cases x methods without a gap: again and again the method or case that lacks the largest share is left out."""
    while scores.isna().any().any():
        methods, cases = scores.isna().mean(axis=0), scores.isna().mean(axis=1)
        if methods.max() >= cases.max():
            scores = scores.drop(columns=methods.idxmax())
        else:
            scores = scores.drop(index=[cases.idxmax()])
    return scores


def significance(scores: pd.DataFrame) -> tuple[Significance | None, NoTest]:
    """Friedman and Nemenyi on cases x methods without gaps, or the reason why not."""
    cases, methods = scores.shape
    if methods < 2:
        return None, "one method"
    if cases < 2:
        return None, "one case"
    test = friedman(scores)
    difference = nemenyi_critical_difference(methods, cases, SURE)
    return Significance(test, difference, rank_groups(test.ranks, difference)), ""


def _lead(first: pd.Series[float], second: pd.Series[float]) -> Lead:
    """Of one method over another, from their accuracies by case and trial."""
    gap = (first - second).unstack("trial")
    if gap.notna().all().any():  # a trial that lacks some cases would distort the mean
        gap = gap.dropna(axis=1)
    by_trial = gap.mean()
    values = by_trial.to_numpy(dtype=float)
    p = None
    if len(values) > 1:  # the limit where all trials differ by the same amount, which a t-test cannot divide by
        same = float(abs(values.mean()) <= ROUNDING)
        varies = np.ptp(np.round(values, 12)) > 0  # more than by rounding errors
        p = float_or_none(stats.ttest_1samp(values, 0.0).pvalue) if varies else same
    theirs = second.unstack("trial")[list(gap.columns)].mean()
    stderr = float_or_none(standard_error(by_trial, ddof=1))
    return Lead(float(values.mean()), stderr, p, float_or_none(standard_error(theirs)))

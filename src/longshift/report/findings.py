"""The summary in plain words: who won, how sure that is, where it is weak, what is missing."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from longshift.report.missing_runs import Missing
from longshift.report.ranking import RankedRows, Ranking, rank_methods
from longshift.report.run_lengths import rising_words
from longshift.report.table_registry import ReportRuns
from longshift.report.titles import RULES, is_averaged, method_title
from longshift.results import averages, per_target
from longshift.text import counted, decimal

MOST_NAMED = 4  # methods that are listed by name; more would bury the finding


def report_findings(runs: ReportRuns, among: RankedRows = "variants", result: Ranking | None = None) -> list[str]:
    """The summary of a report, and whether its runs were too short; nothing without any accuracy on a target.

    Args:
        runs: The runs.
        among: Which rows are ranked (see `rank_methods`).
        result: The ranking, if it was made before.
    """
    if not runs.chosen["target_accuracy"].notna().any():
        return []
    result = result or rank_methods(runs.chosen, among)
    return [*summarize(runs.chosen, result, runs.missing), *filter(None, [rising_words(runs.frame)])]


def summarize(chosen: pd.DataFrame, result: Ranking, missing: Missing) -> list[str]:
    """Sentences, most important first."""
    rule = str(chosen["rule"].iloc[0])
    sentences = [_winner(result), *_how_sure(result), *_weak(result.runs, result), trials_words(result)]
    if rule != "validation":
        sentences.append(f"Selection: {rule} ({RULES[rule]}).")
    if result.left_out:
        names = in_words([method_title(name) for name in result.left_out])
        sentences.append(f"Not ranked because they lack some of the cases or trials: {names}.")
    sentences.append(unranked_words(result))
    if missing.count:
        sentences.append(
            f"Incomplete: {missing.in_short()}; tables mark every cell with fewer runs behind it than the others."
        )
    return [sentence for sentence in sentences if sentence]


def trials_words(result: Ranking) -> str:
    """Which trials do not count because some of the ranked methods lack them; nothing if all count."""
    if not result.trials_left_out:
        return ""
    return f"Ranks use only trials that all ranked methods have. Left out: {in_words(result.trials_left_out)}."


def unranked_words(result: Ranking) -> str:
    """Which rows of the tables were not to be ranked; nothing if all were."""
    averaged = sum(map(is_averaged, result.unranked))
    variants = len(result.unranked) - averaged
    parts = [counted(variants, "variant")] if variants else []
    parts += [f"averaged weights of {counted(averaged, 'row')}"] if averaged else []
    return f"Not ranked, only in the tables: {' and '.join(parts)}." if parts else ""


def _winner(result: Ranking) -> str:
    name, mean = method_title(result.winner), 100 * result.mean[result.winner]
    if len(result.order) == 1:
        return f"{name} reaches {mean:.1f}% on unseen domains (mean over {counted(result.cases, 'case')})."
    if not result.comparable:
        return (
            "The methods cannot be compared: no trial of a target has numbers of all of them. Highest mean over the "
            f"targets it has: {name} with {mean:.1f}%."
        )
    over = f"on average over {counted(result.cases, 'case')}"
    if result.cases_left_out:
        over += f" that all of them have ({result.cases_left_out} left out)"
    if result.above:
        best = max(result.above, key=lambda method: result.mean[method])
        return (
            f"Ranks and means disagree: {name} ranks first of {len(result.order)} methods on unseen domains, "
            f"with {mean:.1f}% {over}; {method_title(best)} has the higher mean, {100 * result.mean[best]:.1f}%."
        )
    if result.level:
        same = [result.winner, *result.level]
        numbers = [f"{method_title(m)} {100 * result.mean[m]:.1f}%" for m in same]
        titles = in_words([method_title(m) for m in same])
        return (
            f"{titles} are tied for the lead among {len(result.order)} methods on unseen domains: {in_words(numbers)} "
            f"{over}{_within(result)}.{_ranks_of_the_tied(result, same)}"
        )
    second = method_title(result.order[1])
    first = ""
    if result.comparisons > 1:
        first = f" It ranks first in {result.firsts[result.winner]} of {result.comparisons} comparisons."
    once = result.lead is not None and result.lead.stderr is None and result.lead.whole
    chance = result.lead is None or not result.lead.sure
    lead = ""
    if result.lead is not None:
        ahead = f"{decimal(100 * result.lead.mean)} points ahead of {second}"
        trials = "the one trial" if result.lead.stderr is None else "the trials"
        # The mean is of all ranked runs, the lead of the trials that have all cases.
        lead = f", {ahead}" if result.lead.whole else f"; in {trials} with all cases it is {ahead}"
    best = "comes first, in one trial," if once else "comes first" if chance else "is the best"
    return f"{name} {best} of {len(result.order)} methods on unseen domains: {mean:.1f}% {over}{lead}.{first}"


def _within(result: Ranking) -> str:
    """Why methods count as tied; with one trial their means are equal, so there is nothing to say."""
    leads = [result.leads[method] for method in result.level]
    if any(lead.stderr is None for lead in leads):
        return ""
    differ = "the difference is" if len(leads) == 1 else f"their differences from {method_title(result.winner)} are"
    own = all(lead.within_own_error for lead in leads)
    which = "" if own else " (of the difference or of the other method's mean, whichever is larger)"
    return f"; {differ} at most one standard error{which}"


def _ranks_of_the_tied(result: Ranking, same: Sequence[str]) -> str:
    """Which of the tied methods has the best average rank; nothing with a single case, which has no average."""
    if result.significance is None:
        return ""
    ranks = result.significance.test.ranks
    name, best = method_title(result.winner), ranks[result.winner]
    shared = [m for m in same if math.isclose(ranks[m], best)]
    rest = [f"{method_title(m)} has {ranks[m]:.2f}" for m in same if m not in shared]
    if len(shared) > 1:
        has = f"{in_words([method_title(m) for m in shared])} share the best average rank"
    else:
        has = f"{name} has the {'better' if len(same) == 2 else 'best'} average rank"
    return f" {has}, {best:.2f}{'; ' if rest else ''}{in_words(rest)}."


def _how_sure(result: Ranking) -> list[str]:
    if len(result.order) == 1:
        return ["There is only one method, so there is nothing to compare."]
    name, second = method_title(result.winner), method_title(result.rival)
    sentences: list[str] = []
    lead = result.lead
    if lead is not None and lead.stderr is not None:
        judged = "more than chance explains" if lead.sure else "the trials alone do not rule out chance"
        if lead.within_own_error:
            judged = "no difference can be seen"
        elif lead.sure and result.rival in result.level and lead.mean > 0:
            judged += f", but no more than the standard error of {second}'s mean"
        p_value = "" if lead.p is None else f" (paired t-test over trials: p = {lead.p:.2g})"
        # Two digits: next to means with one digit, a difference of 0.0 could contradict them (55.24% and 55.26%).
        gap = f"{name} minus {second} is {decimal(100 * lead.mean, 2, signed=True)} points"
        if abs(100 * lead.mean) < 0.005:
            gap = f"{name} and {second} differ by less than 0.01 points,"
        sentences.append(
            f"How sure: {gap} with a standard error of {100 * lead.stderr:.2f} over trials{p_value}; {judged}."
        )
    elif lead is not None:
        both = f"that all ranked methods have{'' if lead.whole else ' in all cases'}"
        sentences.append(f"How sure: one trial only {both}, so the spread between trials is unknown. Run more trials.")
    found = result.significance
    if found is None:
        return [*sentences, f"No significance test: {result.why_not}."]
    p = "p < 0.001" if found.test.f_p < 0.001 else f"p = {found.test.f_p:.3f}"
    over = counted(found.test.cases, "case")
    if found.test.unanimous and not found.differs:
        return [
            *sentences,
            f"All {over} rank the methods alike, but they are too few for a significant difference (Iman and "
            f"Davenport's test, {p}).",
        ]
    if not found.differs:
        return [
            *sentences,
            f"Over {over} Iman and Davenport's test finds no significant difference between the methods ({p}).",
        ]
    behind = found.worse_than(result.winner)
    worse = [method_title(m) for m in behind]
    rest = [method_title(m) for m in result.order[1:] if m not in behind]
    better = (
        f"{name} is significantly better than {in_words(worse)}"
        if worse
        else f"{name} is not significantly better than any other method"
    )
    named = in_words(rest) if len(rest) <= MOST_NAMED else f"the other {len(rest)}"
    also = f", but not than {named}" if worse and rest else ""
    return [
        *sentences,
        f"Over {over} the methods differ (Iman and Davenport's test, {p}); by Nemenyi's test {better}{also} "
        f"(critical difference of average ranks {found.critical_difference:.2f}).",
    ]


def _weak(chosen: pd.DataFrame, result: Ranking) -> list[str]:
    name = method_title(result.winner)
    own = averages(chosen[chosen["method"] == result.winner], ["target_many", "target_few", "target_accuracy"]).mean(
        numeric_only=True
    )
    sentences = []
    many, few = own["target_many"], own["target_few"]
    if pd.notna(many) and pd.notna(few):
        if few < many:
            sentences.append(
                f"With {name}, classes with few training samples reach {100 * few:.1f}%, "
                f"{100 * (many - few):.1f} points less than those with many."
            )
        else:
            sentences.append(
                f"{name} reaches {100 * few:.1f}% on classes with few training samples, {100 * many:.1f}% on those "
                "with many."
            )
    single = per_target(chosen, ["target_accuracy"]).dropna(subset=["target_accuracy"])
    mine = single[single["method"] == result.winner]
    if len(mine) > 1:
        worst = mine.sort_values("target_accuracy", kind="stable").iloc[0]
        place = f"{worst['target']} ({worst['dataset']}, {worst['setting']})"
        sentences.append(f"The hardest target for {name} is {place} with {100 * worst['target_accuracy']:.1f}%.")
    best = single.loc[single.groupby(["dataset", "setting", "target"])["target_accuracy"].idxmax()]
    others = best[best["method"] != result.winner]
    if len(others) and len(result.order) > 1:
        names = in_words([method_title(m) for m in dict.fromkeys(others["method"])], 4)
        sentences.append(f"Another method is better on {len(others)} of {counted(len(best), 'case')} ({names}).")
    return sentences


def in_words(names: Sequence[str], most: int = 6) -> str:
    """Such as "A, B and C"; beyond `most`, how many more."""
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1]))) if names else ""

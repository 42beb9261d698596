"""What the summary of a report says: who leads, how sure that is, where it is weak, what is missing."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from longshift.report.kinds import ReportRuns
from longshift.report.ranking import RankedRows, Ranking, rank_methods
from longshift.report.run_lengths import StillRising, still_rising
from longshift.report.runs import MissingRuns
from longshift.report.table import float_or_none
from longshift.report.titles import words
from longshift.sweep import averages, per_target

FINDINGS = ("winner", "significance", "rare_classes", "hardest_target", "run_length", "limits")  # in words.txt.j2


@dataclass(frozen=True)
class ReportFacts:
    """The facts behind the findings of a report; accuracies are shares of one.

    Attributes:
        ranking: The methods, from best to worst.
        rule: How weights and draws were chosen.
        few: Accuracy of the first method on classes with few training samples.
        many: The same on classes with many.
        hardest: The row (target, dataset, setting, target_accuracy) in which the first method has its lowest accuracy;
            None if there is one target.
        lost: Cases (dataset, setting, target) in which another method is better than the first.
        better: Those methods.
        rising: Where runs were too short.
        missing: Runs without numbers.
    """

    ranking: Ranking
    rule: str
    few: float | None
    many: float | None
    hardest: Mapping[Hashable, Any] | None
    lost: int
    better: tuple[str, ...]
    rising: StillRising | None
    missing: MissingRuns


def report_facts(
    runs: ReportRuns, among: RankedRows = "variants", ranking: Ranking | None = None
) -> ReportFacts | None:
    """Return the facts of a report; None without any accuracy on a target.

    Args:
        runs: The runs.
        among: Which rows are ranked (see `rank_methods`).
        ranking: The ranking, if it was made before.
    """
    if not runs.chosen["target_accuracy"].notna().any():
        return None
    ranking = ranking or rank_methods(runs.chosen, among)
    first = ranking.winner
    own = averages(ranking.runs[ranking.runs["method"] == first], ["target_many", "target_few"])
    few, many = (float_or_none(own[name].mean()) for name in ("target_few", "target_many"))
    single = per_target(ranking.runs, ["target_accuracy"]).dropna(subset=["target_accuracy"])
    mine = single[single["method"] == first].sort_values("target_accuracy", kind="stable").to_dict("records")
    hardest = mine[0] if len(mine) > 1 else None
    best = single.loc[single.groupby(["dataset", "setting", "target"])["target_accuracy"].idxmax()]
    others = best[best["method"] != first]
    better = tuple(dict.fromkeys(map(str, others["method"])))
    rising = still_rising(runs.frame)
    return ReportFacts(ranking, runs.rule, few, many, hardest, len(others), better, rising, runs.missing)


def findings(facts: ReportFacts | None) -> list[str]:
    """The findings, most important first, at most six; none without facts."""
    if facts is None:
        return []
    return [text for name in FINDINGS if (text := words(f"{name}_finding", facts=facts, ranking=facts.ranking))]

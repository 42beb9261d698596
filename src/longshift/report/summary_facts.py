"""What the summary of a report says: who leads, how sure that is, where it is weak, what is missing."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from longshift.array_types import FloatArray
from longshift.report.kinds import ReportRuns
from longshift.report.ranking import RankedRows, Ranking, rank_methods
from longshift.report.runs import MissingRuns, each_once
from longshift.report.table import float_or_none
from longshift.report.titles import order_places, words
from longshift.sweep import averages, per_target

FINDINGS = ("winner", "significance", "rare_classes", "hardest_target", "run_length", "limits")  # in words.txt.j2
CURVE = "validation_curve"  # JSON: [[step, accuracy], ...]
RISES = 0.01  # gain of the last third: a run that gained more was stopped too early


@dataclass(frozen=True, eq=False)
class CurveGroup:
    """The runs of equal length of one dataset and setting."""

    title: str
    length: int  # of the training
    steps: list[int]  # where every run was evaluated: a step that only some have would distort the mean
    accuracy: FloatArray  # of each run at each of these steps

    def last_gains(self) -> FloatArray:
        """What the last third brought each run; empty if it has no evaluation, or none before it.

        Thirds end at the last evaluation inside them.
        """
        start, end = (sum(3 * step <= number * self.length for step in self.steps) - 1 for number in (2, 3))
        return self.accuracy[:, end] - self.accuracy[:, start] if 0 <= start < end else np.empty(0)


def curve_groups(frame: pd.DataFrame) -> list[CurveGroup]:
    """All finished runs with a curve, each once, whatever their hyper-parameters, by dataset, setting and length."""
    if CURVE not in frame:
        return []
    good = frame[(frame["status"] == "done") & frame[CURVE].notna() & ~frame[CURVE].isin(["", "[]"])]
    good = each_once(good[good["steps"].notna()])
    groups = []
    for dataset, setting in order_places(good):
        here = good[(good["dataset"] == dataset) & (good["setting"] == setting)]
        lengths = sorted({int(length) for length in here["steps"]})
        for length in lengths:
            parts = [dataset] * (good["dataset"].nunique() > 1) + [setting] + [f"{length} steps"] * (len(lengths) > 1)
            curves = [dict(json.loads(str(text))) for text in here.loc[here["steps"] == length, CURVE]]
            steps = sorted(set.intersection(*map(set, curves)))
            accuracy = np.array([[curve[step] for step in steps] for curve in curves], dtype=np.float64)
            groups.append(CurveGroup(", ".join(parts), length, steps, accuracy))
    return [group for group in groups if group.steps]


@dataclass(frozen=True)
class StillRising:
    """The settings in which most runs stopped while validation accuracy was still rising."""

    titles: tuple[str, ...]  # those settings
    everywhere: bool  # whether these are all
    gain: float  # what the last third of training brought on average


def still_rising(frame: pd.DataFrame) -> StillRising | None:
    """Where validation accuracy still rose in the last third of most runs; None if nowhere."""
    groups = {group.title: gains for group in curve_groups(frame) if len(gains := group.last_gains())}
    rising = {title: gains for title, gains in groups.items() if np.mean(gains > RISES) > 0.5}
    if not rising:
        return None
    return StillRising(tuple(rising), len(rising) == len(groups), float(np.mean(np.concatenate([*rising.values()]))))


@dataclass(frozen=True)
class ReportFacts:
    """The facts behind the findings of a report; accuracies are shares of one."""

    ranking: Ranking  # the methods, from best to worst
    rule: str  # how weights and draws were chosen
    few: float | None  # accuracy of the first method on classes with few training samples
    many: float | None  # the same on classes with many
    # The row (target, dataset, setting, target_accuracy) in which the first method has its lowest accuracy; None if
    # there is one target
    hardest: Mapping[Hashable, Any] | None
    lost: int  # cases (dataset, setting, target) in which another method is better than the first
    better: tuple[str, ...]  # those methods
    rising: StillRising | None  # where runs were too short
    missing: MissingRuns  # runs without numbers


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

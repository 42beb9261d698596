"""Were the runs long enough? Validation accuracy along training, and what its last third still brought."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pandas as pd

from longshift.array_types import FloatArray
from longshift.report.runs import each_once
from longshift.report.titles import order_places

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
    """The settings in which most runs stopped while validation accuracy was still rising.

    Attributes:
        titles: Those settings.
        everywhere: Whether these are all.
        gain: What the last third of training brought on average.
    """

    titles: tuple[str, ...]
    everywhere: bool
    gain: float


def still_rising(frame: pd.DataFrame) -> StillRising | None:
    """Where validation accuracy still rose in the last third of most runs; None if nowhere."""
    groups = {group.title: gains for group in curve_groups(frame) if len(gains := group.last_gains())}
    rising = {title: gains for title, gains in groups.items() if np.mean(gains > RISES) > 0.5}
    if not rising:
        return None
    return StillRising(tuple(rising), len(rising) == len(groups), float(np.mean(np.concatenate([*rising.values()]))))

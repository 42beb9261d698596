"""Were the runs long enough? Validation accuracy along training, and what its last third still brought."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from longshift.array_types import FloatArray
from longshift.report.runs import each_once
from longshift.report.table import Cell, Column, Table, TableRow, float_or_none
from longshift.report.titles import order_places, words
from longshift.sweep import standard_error

CURVE = "validation_curve"  # JSON: [[step, accuracy], ...]
RISES = 0.01  # gain of the last third: a run that gained more was stopped too early
COLUMNS = {
    "runs": "runs", "steps": "steps", "one_third": "after 1/3", "two_thirds": "after 2/3", "end": "at the end",
    "middle_gain": "gain, second third", "last_gain": "gain, last third", "chosen_late": "chosen late (%)",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class CurveGroup:
    """The runs of equal length of one dataset and setting."""

    title: str
    length: int  # of the training
    steps: list[int]  # where every run was evaluated: a step that only some have would distort the mean
    accuracy: FloatArray  # of each run at each of these steps
    chosen: FloatArray  # the steps that count, of the runs that record them

    def third(self, number: int) -> int | None:
        """The position of the last evaluation inside the first `number` thirds of the training."""
        inside = sum(3 * step <= number * self.length for step in self.steps)
        return inside - 1 if inside else None

    def gains(self, number: int) -> FloatArray:
        """What the third number 2 or 3 brought each run; empty if it has no evaluation before it."""
        start, end = self.third(number - 1), self.third(number)
        if start is None or end is None or start == end:
            return np.empty(0)
        return np.asarray(self.accuracy[:, end] - self.accuracy[:, start])


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
            runs = here[here["steps"] == length]
            parts = [dataset] * (good["dataset"].nunique() > 1) + [setting] + [f"{length} steps"] * (len(lengths) > 1)
            curves = [dict(json.loads(str(text))) for text in runs[CURVE]]
            steps = sorted(set.intersection(*map(set, curves)))
            accuracy = np.array([[curve[step] for step in steps] for curve in curves], dtype=np.float64)
            chosen = runs["selected_step"].dropna().to_numpy(dtype=np.float64)
            groups.append(CurveGroup(", ".join(parts), length, steps, accuracy, chosen))
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
    groups = {group.title: gains for group in curve_groups(frame) if len(gains := group.gains(3))}
    rising = {title: gains for title, gains in groups.items() if np.mean(gains > RISES) > 0.5}
    if not rising:
        return None
    return StillRising(tuple(rising), len(rising) == len(groups), float(np.mean(np.concatenate([*rising.values()]))))


def length_tables(frame: pd.DataFrame) -> list[Table]:
    """One table: accuracy after each third of the training, and what the second and the last one brought."""
    groups = curve_groups(frame)
    if not groups:
        return []
    columns = tuple(Column(title, "", {"measure": measure}, None) for measure, title in COLUMNS.items())
    rows = tuple(TableRow(group.title, group.title, "", tuple(_cells(group))) for group in groups)
    title = "Length of the runs: validation accuracy during training"
    return [Table("length", "length", title, columns, rows, words("length_caption"), head="Setting")]


def _cells(group: CurveGroup) -> Iterator[Cell]:
    runs = len(group.accuracy)
    yield from (Cell(n, digits=0, runs=runs) for n in (runs, group.length))
    for at in (group.third(1), group.third(2), -1):
        yield Cell(note="no evaluation so early") if at is None else _mean(group.accuracy[:, at], 1)
    for number in (2, 3):
        gains = group.gains(number)
        yield _mean(gains, 2, signed=True) if len(gains) else Cell(note="no evaluation in it or before it")
    late = (3 * group.chosen > 2 * group.length).astype(np.float64)
    yield replace(_mean(late, 0), stderr=None) if len(late) else Cell(note="not recorded")


def _mean(values: FloatArray, digits: int, signed: bool = False) -> Cell:
    stderr = float_or_none(100 * standard_error(pd.Series(values)))
    return Cell(100 * float(np.mean(values)), stderr, digits=digits, signed=signed, runs=len(values))

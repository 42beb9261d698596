"""Were the runs long enough? Validation accuracy along training, and what its last third still brought."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from longshift.report.runs import run_names
from longshift.report.table import Cell, Column, Table, TableRow, float_or_none, method_rows
from longshift.report.titles import is_averaged, order_places, words
from longshift.sweep import standard_error

CURVE = "validation_curve"  # JSON: [[step, accuracy], ...]
RISES = 0.01  # gain of the last third: a run that gained more was stopped too early


@dataclass(frozen=True)
class RunCurve:
    """One run: the rows it stands in, validation accuracy by step, and the step that was chosen."""

    methods: tuple[str, ...]  # several where a variant is the same run as another row
    accuracy: Mapping[int, float]
    chosen: int | None


@dataclass(frozen=True)
class CurveGroup:
    """The runs of equal length of one dataset and setting."""

    title: str
    dataset: str
    setting: str
    length: int  # steps
    runs: tuple[RunCurve, ...]

    @property
    def steps(self) -> list[int]:
        """Steps where every run was evaluated: a step that only some have would distort the mean."""
        return sorted(set.intersection(*(set(run.accuracy) for run in self.runs)))

    def values(self, step: int) -> list[float]:
        """Accuracy of every run at a step."""
        return [run.accuracy[step] for run in self.runs]

    def third(self, number: int) -> int | None:
        """The last evaluation inside the first `number` thirds of the training."""
        inside = [step for step in self.steps if 3 * step <= number * self.length]
        return max(inside) if inside else None

    def gains(self, number: int, method: str | None = None) -> list[float]:
        """What the third number 2 or 3 brought each run (of one method); empty if it has no evaluation before it."""
        start, end = self.third(number - 1), self.third(number)
        if start is None or end is None or start == end:
            return []
        return [r.accuracy[end] - r.accuracy[start] for r in self.runs if method is None or method in r.methods]

    def chosen_late(self) -> list[float]:
        """1 for every run whose chosen step lies in the last third, 0 for the others."""
        return [float(3 * run.chosen > 2 * self.length) for run in self.runs if run.chosen is not None]


def curve_groups(frame: pd.DataFrame) -> list[CurveGroup]:
    """All finished runs with a curve, each once, whatever their hyper-parameters, by dataset, setting and length."""
    if CURVE not in frame:
        return []
    found: dict[tuple[str, str, int], dict[str, RunCurve]] = {}
    good = frame[(frame["status"] == "done") & frame[CURVE].notna() & (frame[CURVE] != "") & frame["steps"].notna()]
    for row, key in zip(good.to_dict("records"), run_names(good), strict=True):
        if is_averaged(str(row["method"])):
            continue  # the same training as the row of its method
        accuracy = {int(step): float(value) for step, value in json.loads(str(row[CURVE]))}
        step = row["selected_step"]
        run = RunCurve((str(row["method"]),), accuracy, None if pd.isna(step) else int(step))
        if accuracy:
            runs = found.setdefault((str(row["dataset"]), str(row["setting"]), int(row["steps"])), {})
            runs[key] = replace(runs[key], methods=(*runs[key].methods, *run.methods)) if key in runs else run
    several = len({dataset for dataset, _, _ in found}) > 1
    groups = []
    for dataset, setting in order_places(good):
        lengths = sorted(n for d, s, n in found if (d, s) == (dataset, setting))
        for length in lengths:
            words = [dataset] * several + [setting] + [f"{length} steps"] * (len(lengths) > 1)
            group = tuple(found[dataset, setting, length].values())
            groups.append(CurveGroup(", ".join(words), dataset, setting, length, group))
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
    groups = [group for group in curve_groups(frame) if group.gains(3)]
    rising = [group for group in groups if np.mean([gain > RISES for gain in group.gains(3)]) > 0.5]
    if not rising:
        return None
    gain = float(np.mean([gain for group in rising for gain in group.gains(3)]))
    return StillRising(tuple(group.title for group in rising), len(rising) == len(groups), gain)


def length_tables(frame: pd.DataFrame) -> list[Table]:
    """Three tables: each setting in short, the last third method by method, and the curves themselves."""
    groups = curve_groups(frame)
    return [_short(groups), _by_method(groups), _curves(groups)] if groups else []


def _short(groups: Sequence[CurveGroup]) -> Table:
    parts: dict[str, tuple[str, Callable[[CurveGroup], Cell]]] = {
        "runs": ("runs", lambda g: Cell(len(g.runs), digits=0, runs=len(g.runs))),
        "steps": ("steps", lambda g: Cell(g.length, digits=0, runs=len(g.runs))),
        "one_third": ("after 1/3", lambda g: _at(g, g.third(1))),
        "two_thirds": ("after 2/3", lambda g: _at(g, g.third(2))),
        "end": ("at the end", lambda g: _at(g, g.steps[-1])),
        "middle_gain": ("gain, second third", lambda g: _gain(g.gains(2))),
        "last_gain": ("gain, last third", lambda g: _gain(g.gains(3))),
        "chosen_late": ("chosen late (%)", lambda g: _mean(g.chosen_late(), 0, spread=False)),
    }
    columns = tuple(Column(title, "", {"measure": measure}, None) for measure, (title, _) in parts.items())
    rows = tuple(
        TableRow(group.title, group.title, "", tuple(make(group) for _, make in parts.values())) for group in groups
    )
    title = "Length of the runs: validation accuracy during training"
    return Table("length", "length", title, columns, rows, words("length_caption"), head="Setting")


def _columns(groups: Sequence[CurveGroup], measure: str) -> tuple[Column, ...]:
    return tuple(
        Column(g.title, "", {"dataset": g.dataset, "setting": g.setting, "measure": measure}, None) for g in groups
    )


def _by_method(groups: Sequence[CurveGroup]) -> Table:
    def cell(method: str, group: CurveGroup) -> Cell:
        there = any(method in run.methods for run in group.runs)
        return _gain(group.gains(3, method)) if there else Cell(note="no finished run")

    methods = (name for group in groups for run in group.runs for name in run.methods)
    rows = method_rows(methods, lambda method: (cell(method, group) for group in groups))
    title = "Gain of validation accuracy in the last third, method by method"
    caption = words("length_methods_caption")
    return Table("length-methods", "length", title, _columns(groups, "last_gain"), rows, caption, long=True)


def _curves(groups: Sequence[CurveGroup]) -> Table:
    rows = []
    for step in sorted({step for group in groups for step in group.steps}):
        cells = [_at(group, step) if step in group.steps else Cell(note="not all runs have it") for group in groups]
        rows.append(TableRow(str(step), str(step), "", tuple(cells)))
    return Table(
        "length-curves", "length", "Validation accuracy (%) by step", _columns(groups, "validation"), tuple(rows),
        words("length_curves_caption"), head="Step", long=True,
    )  # fmt: skip


def _at(group: CurveGroup, step: int | None) -> Cell:
    return Cell(note="no evaluation so early") if step is None else _mean(group.values(step), 1)


def _gain(gains: Sequence[float]) -> Cell:
    return _mean(gains, 2, signed=True) if gains else Cell(note="no evaluation in it or before it")


def _mean(values: Sequence[float], digits: int, signed: bool = False, spread: bool = True) -> Cell:
    if not values:
        return Cell(note="not recorded")
    stderr = float_or_none(100 * standard_error(pd.Series(values))) if spread else None
    return Cell(100 * float(np.mean(values)), stderr, digits=digits, signed=signed, runs=len(values))

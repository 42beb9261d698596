"""Margins and validation accuracy as curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from longshift.metrics import margins
from longshift.report.figures import Line, line_chart
from longshift.report.html_page import Section, figure, paragraphs
from longshift.report.run_records import Record
from longshift.report.table import number
from longshift.report.titles import method_title
from longshift.results import standard_error

POINTS = 101


@dataclass(frozen=True, eq=False)
class Margins:
    """The margins p_y - max_{k != y} p_k of one method's predictions."""

    name: str
    values: npt.NDArray[np.float64]

    @classmethod
    def of(cls, name: str, records: Sequence[Record]) -> Margins | None:
        """From the kept predictions of runs on the target; None if there are none."""
        found = [r.predictions() for r in records]
        parts = [margins(f["target_logits"], f["target_labels"]) for f in found if f and "target_logits" in f]
        return cls(name, np.concatenate([np.asarray(p, dtype=np.float64) for p in parts])) if parts else None


def margin_section(given: Sequence[Margins], name: str = "") -> Section:
    """Pr[margin <= delta] over delta: a method whose curve lies lower is surer of the right answer."""
    if not given:
        text = (
            "Margins need the predictions of single samples, and no run kept them: train with --save-predictions, or "
            "set save_predictions = true under [runtime] of the sweep."
        )
        return Section("Margins", paragraphs(text), name=name)
    at = np.linspace(-1, 1, POINTS)
    lines = []
    for one in given:
        below = np.searchsorted(np.sort(one.values), at, side="right") / len(one.values)
        lines.append(Line(one.name, [float(x) for x in at.round(2)], [float(y) for y in below]))
    svg = line_chart(lines, "margin δ", "samples with a margin of at most δ", y_range=(0.0, 1.0))
    averages = ", ".join(f"{one.name} {one.values.mean():.3f}" for one in given)
    caption = (
        "Margin: probability of the true class minus the largest of the others; below 0 the sample is wrong. "
        f"Lower curves are better. Average margin: {averages}."
    )
    return Section("Margins", figure(svg, caption), name=name)


def validation_section(records: Mapping[str, Sequence[Record]], name: str = "") -> Section:
    """Accuracy on the balanced validation set along training, mean over targets and trials with its standard error."""
    lines = []
    for method, runs in records.items():
        steps: dict[int, list[float]] = {}
        for record in runs:
            for row in record.metrics():
                steps.setdefault(int(row["step"]), []).append(float(row["validation"]["accuracy"]))
        # Runs of equal length: a step that only some runs have would bend the mean.
        steps = {step: values for step, values in sorted(steps.items()) if len(values) == len(runs)}
        means = [float(np.mean(v)) for v in steps.values()]
        spread = [number(standard_error(pd.Series(v))) or 0.0 for v in steps.values()]
        if means:
            lines.append(Line(method_title(method), list(steps), means, spread))
    svg = line_chart(lines, "step", "validation accuracy")
    caption = "Balanced validation set of the training domains; mean over targets and trials, band: standard error."
    return Section("Along training", figure(svg, caption), name=name)

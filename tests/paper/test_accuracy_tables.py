"""Significance of measured ranks: which cases and methods take part, and p-values too small to print."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from longshift.paper.accuracy_tables import measured_scores, pairs_table
from longshift.paper.recipe import Results
from longshift.paper.theory_tables import correlation_rows
from longshift.paper.workspace import open_workspace, quick_scale
from tests.report.fake import frame


def results_of(runs: pd.DataFrame, out: Path) -> Results:
    found = Results(open_workspace("digits", quick_scale("digits"), out, methods=["erm"]), (), {})
    object.__setattr__(found, "frame", runs)  # in place of what a store would give
    return found


def test_a_case_that_no_method_has_costs_no_method(tmp_path: Path) -> None:
    runs = frame(targets=("chalk", "ink", "neon"))
    lost = runs["target"] == "neon"
    runs.loc[lost, "status"] = "failed"
    runs.loc[(runs["method"] == "boda") & (runs["target"] == "ink"), "status"] = "failed"  # a gap of its own
    scores = measured_scores(results_of(runs, tmp_path))
    assert list(scores.columns) == ["erm", "bsoftmax", "ndcl"]
    assert list(scores.index) == [("digits", "Duality", "chalk"), ("digits", "Duality", "ink")]


def test_a_small_p_value_is_not_printed_as_zero() -> None:
    rng = np.random.default_rng(0)
    base = rng.random(40)
    table = pairs_table(pd.DataFrame({"erm": base, "ndcl": base + 0.1 + 0.01 * rng.random(40)}))
    assert table is not None
    gap, p, corrected = table.rows[0].cells
    assert gap.text.startswith("+10.")
    assert p.value is not None
    assert 0 < p.value < 1e-6
    assert p.text == corrected.text == "<0.0001"


def test_the_p_value_of_what_holds_by_definition() -> None:
    accuracy = np.linspace(0.2, 0.8, 12)
    points = pd.DataFrame({"small_margin": 1 - accuracy, "flat": np.ones(12)})
    rows = {row.name: [cell.text for cell in row.cells] for row in correlation_rows(points, pd.Series(accuracy))}
    assert rows["correlation"] == ["-1.000", "\u2013"]
    assert rows["p_value"] == ["<1e-08", "\u2013"]
    few = correlation_rows(points[:3], pd.Series(accuracy[:3]))
    assert all(cell.note for cell in few[2].cells)  # an interval needs 4 points

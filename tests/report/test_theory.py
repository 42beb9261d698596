"""Correlations of margins and posterior discrepancies with target accuracy: numbers, rows, words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from longshift.analysis.correlation import relate, relate_within
from longshift.report.kinds import theory_runs, theory_tables
from longshift.report.table import Table, TableRow
from longshift.sweep import as_frame
from longshift.sweep.selection import choose
from tests.report.fake import row

METHODS = ("erm", "bsoftmax", "boda", "ndcl", "mine")
SETTINGS = ("TotalHeavyTail", "Duality")
TARGETS = ("A", "C", "P")


def made(seed: int = 0, trials: int = 2, **more: Any) -> pd.DataFrame:
    """Runs whose margin rises and whose discrepancy falls with accuracy inside each cell; cells differ wildly."""
    rng = np.random.default_rng(seed)
    rows = []
    for s, setting in enumerate(SETTINGS):
        for t, target in enumerate(TARGETS):
            for m, method in enumerate(METHODS):
                for trial in range(trials):
                    skill = 0.05 * m + 0.02 * float(rng.standard_normal())
                    place = 0.1 * t - 0.2 * s
                    noise = [0.01 * float(v) for v in rng.standard_normal(3)]
                    quantities = {
                        "target_margin": skill - place + noise[0],
                        "validation_margin": noise[1],
                        "posterior_target": 0.4 - skill + place + noise[2],
                        "posterior_sources": 0.1,
                    } | more  # fmt: skip
                    rows.append(row(method, trial, 0, target, setting=setting, value=0.5 + skill + place, **quantities))
                    ema = row(f"{method}+ema", trial, 0, target, setting=setting, value=0.1, **quantities)
                    rows.append(ema | {"target_margin": 9.0})
    return as_frame(rows)


def find(tables: Sequence[Table], name: str) -> TableRow:
    return next(found for table in tables for found in table.rows if found.name == name)


def numbers(found: TableRow) -> list[float]:
    assert all(cell.value is not None for cell in found.cells)
    return [float(cell.value) for cell in found.cells if cell.value is not None]


def test_pooled_numbers_are_scipys() -> None:
    chosen = choose(made())
    tables = theory_tables(chosen)
    runs = theory_runs(chosen)
    assert len(runs) == 2 * 3 * 5 * 2  # without the averaged rows
    for name in ("target_margin", "validation_margin", "posterior_target"):
        one = stats.pearsonr(runs[name], runs["target_accuracy"])
        low, high = one.confidence_interval(0.95)
        other = stats.spearmanr(runs[name], runs["target_accuracy"])
        expected = [60, one.statistic, low, high, one.pvalue, other.statistic, other.pvalue]
        assert numbers(find(tables, f"{name}: all")) == pytest.approx(expected, rel=1e-6)
        for setting in SETTINGS:
            part = runs[runs["setting"] == setting]
            one = stats.pearsonr(part[name], part["target_accuracy"])
            found = numbers(find(tables, f"{name}: {setting}"))
            assert [found[0], found[1], found[4]] == pytest.approx([30, one.statistic, one.pvalue], rel=1e-6)


def regression(x: Any, y: Any, cells: Any) -> tuple[float, float]:
    """t and its p-value of the slope of x in a least-squares fit of y with one intercept a cell."""
    dummies = pd.get_dummies(pd.Series(list(cells)).astype(str)).to_numpy(dtype=float)
    design = np.column_stack([np.asarray(x, dtype=float), dummies])
    solution, *_ = np.linalg.lstsq(design, np.asarray(y, dtype=float), rcond=None)
    residual = np.asarray(y) - design @ solution
    freedom = len(design) - design.shape[1]
    error = np.sqrt(residual @ residual / freedom * np.linalg.inv(design.T @ design)[0, 0])
    t = float(solution[0] / error)
    return t, float(2 * stats.t.sf(abs(t), freedom))


def test_within_cells_is_the_slope_of_a_regression_with_an_intercept_a_cell() -> None:
    chosen = choose(made())
    tables = theory_tables(chosen)
    runs = theory_runs(chosen)
    cells = [str(c) for c in zip(runs["dataset"], runs["setting"], runs["target"], strict=True)]
    for name in ("target_margin", "validation_margin", "posterior_target"):
        found = find(tables, f"{name}: within")
        assert "6" in found.title
        n, r, low, high, p, rho, rho_p = numbers(found)
        t, expected = regression(runs[name], runs["target_accuracy"], cells)
        freedom = 60 - 6 - 1
        assert r * np.sqrt(freedom / (1 - r * r)) == pytest.approx(t, rel=1e-6)
        assert p == pytest.approx(expected, rel=1e-6)
        half = stats.norm.ppf(0.975) / np.sqrt(freedom - 1)
        assert (low, high) == pytest.approx((np.tanh(np.arctanh(r) - half), np.tanh(np.arctanh(r) + half)))
        centered = runs[[name, "target_accuracy"]] - runs.groupby(cells)[[name, "target_accuracy"]].transform("mean")
        assert rho == pytest.approx(stats.spearmanr(centered[name], centered["target_accuracy"]).statistic)
        assert rho_p == pytest.approx(2 * stats.t.sf(abs(rho) * np.sqrt(freedom / (1 - rho * rho)), freedom))
        assert n == 60
    # The made-up cells hide the relation that every one of them has.
    assert numbers(find(tables, "target_margin: within"))[1] > 0.9
    assert numbers(find(tables, "target_margin: all"))[1] < 0.2
    assert numbers(find(tables, "posterior_target: within"))[1] < -0.9


def test_means_are_a_point_a_method_and_setting() -> None:
    chosen = choose(made())
    tables = theory_tables(chosen)
    points = theory_runs(chosen).groupby(["setting", "method"])[["posterior_target", "target_accuracy"]].mean()
    one = stats.pearsonr(points["posterior_target"], points["target_accuracy"])
    found = numbers(find(tables, "posterior_target: means"))
    assert [found[0], found[1], found[4]] == pytest.approx([10, one.statistic, one.pvalue], rel=1e-6)


def test_single_points_and_missing_values_do_not_count() -> None:
    x, y = np.array([1.0, 2, 3, 4, 99]), np.array([1.0, 3, 2, 4, -99])
    found, cells = relate_within(x, y, ["a", "a", "b", "b", "alone"])
    assert found is not None
    assert (found.pearson.n, cells) == (4, 2)
    # Centered: x -1/2 1/2 -1/2 1/2, y -1 1 -1 1.
    assert found.pearson.r == pytest.approx(1)
    assert relate_within(x[:2], y[:2], ["a", "b"]) == (None, 0)
    assert relate(x[:2], y[:2]) is None
    runs = made()
    runs.loc[runs["setting"] == "Duality", "posterior_target"] = np.nan
    tables = theory_tables(choose(runs))
    assert numbers(find(tables, "posterior_target: all"))[0] == 30
    assert not any(r.name == "posterior_target: Duality" for t in tables for r in t.rows)


def test_ranks_of_few_points_prove_little() -> None:
    three, five = (relate(np.arange(float(n)), np.arange(float(n)) ** 2) for n in (3, 5))
    assert three is not None
    assert five is not None
    assert three.spearman.r == pytest.approx(1)
    assert np.isnan([three.spearman.p, three.pearson.low]).all()
    assert np.isfinite(three.pearson.p)
    assert five.spearman.p == pytest.approx(2 / 120)  # exact: one order of 5! or its reverse
    few = as_frame([row(m, 0, value=0.5 + 0.1 * i, target_margin=0.1 * i * i) for i, m in enumerate(METHODS[:3])])
    cells = find(theory_tables(choose(few)), "target_margin: means").cells
    assert [bool(cell.note) for cell in cells] == [False, False, True, True, False, False, True]


def test_what_is_empty_or_flat_is_left_out_and_said() -> None:
    tables = theory_tables(choose(made()))
    assert [t.name for t in tables] == ["theory-target-margin", "theory-validation-margin", "theory-posterior-target"]
    assert len(tables[-1].notes) > 0
    flat: dict[str, Any] = {"target_margin": 0.2, "validation_margin": 0.2, "posterior_target": None}
    runs = made(**flat)
    runs = runs[~runs["method"].str.contains("+", regex=False)]
    assert theory_tables(choose(runs)) == []

"""Correlations between tables: the paper's own tables, and unhappy inputs."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from longshift.analysis.correlation import correlate, pearson
from longshift.errors import LongshiftError
from longshift.paper.published_tables import overall_results, paper_table


def test_the_papers_table_follows_from_its_other_tables() -> None:
    quantities = paper_table("quantitative").pivot_table(index=["method", "setting"], columns="quantity", values="mean")
    home = overall_results().query("dataset == 'OfficeHome' and group == 'average'")
    accuracy = home.set_index(["method", "setting"])["mean"].loc[quantities.index]
    ours = correlate(quantities, accuracy).set_index("quantity")
    printed = paper_table("pearson").set_index("quantity")
    assert set(ours["n"]) == {12}
    for quantity in ("margin", "small_margin", "posterior"):
        assert ours.loc[quantity, "correlation"] == pytest.approx(printed.loc[quantity, "correlation"], abs=5e-4)
        # The paper cuts its p-values off instead of rounding them: 2.4397e-4 is printed as 2.439e-4.
        assert ours.loc[quantity, "p_value"] == pytest.approx(printed.loc[quantity, "p_value"], rel=5e-4)


def test_unhappy_inputs() -> None:
    with pytest.raises(LongshiftError, match="3 runs"):
        pearson(np.array([1.0, 2.0]), np.array([1.0, 2.0]))
    with pytest.raises(LongshiftError, match="finite"):
        pearson(np.array([1.0, 2.0, np.nan]), np.arange(3.0))
    with pytest.raises(LongshiftError, match=r"\(3,\) and \(4,\)"):
        pearson(np.arange(3.0), np.arange(4.0))
    assert math.isnan(pearson(np.ones(5), np.arange(5.0)).r)
    three = pearson(np.array([1.0, 2.0, 4.0]), np.array([1.0, 3.0, 3.0]))
    assert math.isnan(three.low)
    assert not math.isnan(three.p)
    perfect = pearson(np.arange(5.0), np.arange(5.0))
    assert (perfect.r, perfect.p, perfect.low, perfect.high) == (1, 0, 1, 1)
    frame = pd.DataFrame({"q": [1.0, 2.0, 3.0]}, index=["a", "b", "c"])
    with pytest.raises(LongshiftError, match="2 both"):
        correlate(frame, pd.Series([1.0, 2.0, 3.0], index=["a", "b", "x"]))


def test_runs_are_matched_by_name_not_by_order() -> None:
    frame = pd.DataFrame({"q": [1.0, 2.0, 4.0, 3.0]}, index=list("abcd"))
    accuracy = pd.Series([3.0, 4.0, 2.0, 1.0], index=list("dcba"))
    assert correlate(frame, accuracy)["correlation"][0] == pytest.approx(1.0)

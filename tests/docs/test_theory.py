"""Numbers that docs/explanation/theory.md quotes follow from the published tables."""

from __future__ import annotations

import pytest
from scipy.stats import norm

from longshift.analysis import correlate, friedman, nemenyi_critical_difference, rank_groups
from longshift.paper.published_tables import overall_results, paper_table


def test_quoted_ranks_and_critical_differences() -> None:
    assert 0.8 * (2 * norm.cdf(1) - 1) == pytest.approx(0.546, abs=5e-4)
    overall = overall_results()
    groups = overall[overall["group"] != "average"]
    shots = groups.pivot_table(index=["dataset", "setting", "group"], columns="method", values="mean")
    assert friedman(shots).ranks["ndcl"] == pytest.approx(5.56, abs=0.005)
    whole = overall.pivot_table(index=["dataset", "setting", "group"], columns="method", values="mean")
    first = rank_groups(friedman(whole).ranks, nemenyi_critical_difference(24, 32))[0]
    assert len(first) > 2
    assert nemenyi_critical_difference(24, 32) == pytest.approx(6.43, abs=0.005)
    assert nemenyi_critical_difference(24, 96) == pytest.approx(3.71, abs=0.005)


@pytest.mark.parametrize(
    ("setting", "quoted"), [("TotalHeavyTail", (0.705, -0.858, -0.864)), ("Duality", (0.689, -0.758, -0.567))]
)
def test_quoted_correlations_within_a_setting(setting: str, quoted: tuple[float, ...]) -> None:
    rows = paper_table("quantitative").query("setting == @setting")
    quantities = rows.pivot_table(index="method", columns="quantity", values="mean")
    home = overall_results().query("dataset == 'OfficeHome' and group == 'average' and setting == @setting")
    accuracy = home.set_index("method")["mean"].loc[quantities.index]
    ours = correlate(quantities, accuracy).set_index("quantity")["correlation"]
    assert [ours[q] for q in ("margin", "small_margin", "posterior")] == pytest.approx(list(quoted), abs=6e-4)

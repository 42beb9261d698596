"""Numbers that docs/results/paper.md quotes follow from the published tables."""

from __future__ import annotations

import pytest

from longshift.analysis import correlate, friedman, nemenyi_critical_difference
from longshift.paper.published_tables import overall_results, paper_table


def test_quoted_ranks_and_critical_differences() -> None:
    overall = overall_results()
    whole = overall.pivot_table(index=["dataset", "setting", "group"], columns="method", values="mean")
    ranks = friedman(whole).ranks
    assert sorted(ranks, key=lambda name: ranks[name])[:2] == ["ndcl", "pgrad"]
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

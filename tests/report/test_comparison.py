"""Measured numbers compared with published ones."""

from __future__ import annotations

import pandas as pd
import pytest
from scipy import stats

from longshift.report.comparison import compare, published, rank_correlation
from longshift.report.kinds import build_tables
from longshift.sweep import as_frame
from tests.report.fake import METHODS, row

AVERAGES = pd.DataFrame(
    [
        (m, "PACS", "Duality", g, 50.0 + i, 0.5)
        for i, m in enumerate(METHODS)
        for g in ("average", "many", "medium", "few")
    ],
    columns=["method", "dataset", "setting", "group", "mean", "stderr"],
)
WORST = pd.DataFrame(
    [(m, "PACS", "Duality", "sketch", 60.0, float("nan")) for m in METHODS],
    columns=["method", "dataset", "setting", "target", "mean", "stderr"],
)


def test_differences_and_order() -> None:
    values = {"erm": 0.512, "bsoftmax": 0.50, "boda": 0.53, "ndcl": 0.54, "mine": 0.9}
    runs = as_frame(row(m, 0, target="sketch", dataset="PACS", value=v) for m, v in values.items())
    made, facts = compare(build_tables(runs), published("the paper", AVERAGES, WORST))
    agreement, beside, worst = made
    assert [t.kind for t in made] == ["agreement", "paper", "paper"]
    erm = next(r for r in beside.rows if r.name == "erm")
    assert [c.text for c in erm.cells[:3]] == ["51.2", "50.0 ± 0.5", "+1.2"]
    assert "mine" not in {r.name for r in beside.rows}
    first = agreement.rows[0]
    rho, tau = (
        stats.spearmanr([51.2, 50, 53, 54], [50, 51, 52, 53]).statistic,
        stats.kendalltau([51.2, 50, 53, 54], [50, 51, 52, 53]).statistic,
    )
    assert [c.value for c in first.cells] == pytest.approx([4, (1.2 - 1 + 1 + 1) / 4, 4.2 / 4, rho, tau])
    assert "sketch" in agreement.rows[4].title
    assert agreement.rows[4].cells[3].note
    assert worst.rows[0].cells[1].text == "60.0"
    assert "mine" in beside.notes[0]
    assert (facts.close, facts.numbers) == (4, 20)
    assert facts.orders == (first,)


def test_settings_that_only_one_side_has() -> None:
    made = [row(m, 0, target="sketch", dataset="PACS", setting=s) for m in METHODS for s in ("Duality", "Cross")]
    tables, facts = compare(build_tables(as_frame(made)), published("the paper", AVERAGES, WORST))
    assert {c.key["setting"] for t in tables if t.kind == "paper" for c in t.columns} == {"Duality"}
    assert (facts.measured, facts.published) == ((("PACS", "Cross"), ("PACS", "Duality")), [("PACS", "Duality")])
    tables, facts = compare(build_tables(as_frame([row("erm", 0)])), published("the paper", AVERAGES, WORST))
    assert (tables, facts.numbers, facts.measured) == ([], 0, (("digits", "Duality"),))


def test_the_same_order_is_one_and_the_reverse_minus_one() -> None:
    values = [3.0, 9.0, 1.0, 4.0]
    assert list(rank_correlation(values, values)) == pytest.approx([1, 1])
    assert list(rank_correlation(values, [-v for v in values])) == pytest.approx([-1, -1])

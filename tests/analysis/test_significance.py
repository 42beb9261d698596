"""Rank tests against scipy, scikit-posthocs, statsmodels, published critical values and the paper's own numbers."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import scikit_posthocs
from hypothesis import given, settings, strategies as st
from scipy import stats

from longshift.analysis.significance import (
    friedman,
    holm,
    nemenyi_critical_difference,
    rank_groups,
    rank_table,
    wilcoxon_holm,
)
from longshift.errors import LongshiftError, UsageError
from longshift.paper.published_tables import overall_results, paper_table


def table(seed: int, cases: int = 12, methods: int = 5, decimals: int = 8) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    values = np.round(rng.normal(size=(cases, methods)) + 0.4 * np.arange(methods), decimals)
    return pd.DataFrame(values, columns=[f"m{j}" for j in range(methods)])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("decimals", [8, 0])  # rounded to integers: many ties
def test_friedman_against_scipy(seed: int, decimals: int) -> None:
    scores = table(seed, decimals=decimals)
    ours = friedman(scores)
    expected = stats.friedmanchisquare(*scores.to_numpy().T)
    assert ours.chi2 == pytest.approx(expected.statistic, rel=1e-10)
    assert ours.chi2_p == pytest.approx(expected.pvalue, rel=1e-9)
    n, k = scores.shape
    assert ours.df == (k - 1, (k - 1) * (n - 1))
    assert ours.f == pytest.approx((n - 1) * ours.chi2 / (n * (k - 1) - ours.chi2))
    assert ours.f_p == pytest.approx(stats.f.sf(ours.f, *ours.df))
    assert list(ours.ranks.values()) == sorted(ours.ranks.values())


@pytest.mark.parametrize("scale", [1.0, 100.0, 1e-9])
def test_scores_that_differ_in_rounding_errors_alone_are_ties(scale: float) -> None:
    means = [float(np.mean(trials)) for trials in ([0.1, 0.2, 0.3], [0.3, 0.2, 0.1], [0.2, 0.2, 0.2])]
    assert len(set(means)) > 1  # 0.20000000000000004 is not 0.2
    scores = scale * pd.DataFrame([[*means, 0.2 + 1e-6]] * 3, columns=list("abcd"))
    assert rank_table(scores).to_numpy().tolist() == [[3, 3, 3, 1]] * 3
    assert friedman(scores).ranks == {"d": 1.0, "a": 3.0, "b": 3.0, "c": 3.0}


@pytest.mark.parametrize(
    ("methods", "alpha", "published"),
    [(2, 0.05, 1.960), (3, 0.05, 2.343), (5, 0.05, 2.728), (10, 0.05, 3.164), (2, 0.10, 1.645), (10, 0.10, 2.920)],
)
def test_critical_values_of_the_nemenyi_test(methods: int, alpha: float, published: float) -> None:
    # Demsar 2006, table 5(a): q_alpha / sqrt(2); the CD is that times sqrt(k (k+1) / (6 N)).
    cases = 50
    value = nemenyi_critical_difference(methods, cases, alpha) / math.sqrt(methods * (methods + 1) / (6 * cases))
    assert value == pytest.approx(published, abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_wilcoxon_and_holm_against_scikit_posthocs(seed: int) -> None:
    scores = table(seed, cases=15)
    expected = scikit_posthocs.posthoc_wilcoxon(scores.melt(), val_col="value", group_col="variable", p_adjust="holm")
    pairs = wilcoxon_holm(scores)
    assert len(pairs) == 10
    for pair in pairs:
        assert pair.p_holm == pytest.approx(float(expected.loc[pair.better, pair.worse]), rel=1e-9)
        raw = stats.wilcoxon(scores[pair.better], scores[pair.worse])
        assert pair.p == pytest.approx(float(raw.pvalue), rel=1e-9)
    only = wilcoxon_holm(scores, against="m4")
    assert {frozenset((p.better, p.worse)) for p in only} == {frozenset(("m4", f"m{j}")) for j in range(4)}


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
@settings(max_examples=50, deadline=None)
def test_holm_against_statsmodels(p: list[float]) -> None:
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    np.testing.assert_allclose(holm(np.array(p)), multitest.multipletests(p, method="holm")[1], atol=1e-12)


@given(st.lists(st.floats(1, 24), min_size=2, max_size=10), st.floats(0.1, 10))
@settings(max_examples=60, deadline=None)
def test_groups_cover_exactly_the_close_pairs(values: list[float], cd: float) -> None:
    ranks = {f"m{i}": v for i, v in enumerate(values)}
    covered = {frozenset((a, b)) for group in rank_groups(ranks, cd) for a in group for b in group if a != b}
    close = {frozenset((a, b)) for a in ranks for b in ranks if a < b and abs(ranks[a] - ranks[b]) <= cd}
    assert covered == close


def test_no_test_is_possible() -> None:
    with pytest.raises(LongshiftError, match="methods"):
        friedman(table(0, methods=1))
    with pytest.raises(LongshiftError, match="methods"):
        wilcoxon_holm(table(0, methods=1))
    with pytest.raises(LongshiftError, match="cases"):
        friedman(table(0, cases=1))
    gap = table(0)
    gap.loc[3, "m2"] = np.nan
    with pytest.raises(LongshiftError, match="m2 in 3"):
        friedman(gap)
    with pytest.raises(UsageError, match="zzz"):
        wilcoxon_holm(table(0), against="zzz")
    with pytest.raises(UsageError, match="between"):
        nemenyi_critical_difference(3, 10, alpha=5)


def test_equal_methods_and_perfect_agreement() -> None:
    same = pd.DataFrame(np.ones((6, 3)), columns=["a", "b", "c"])
    result = friedman(same)
    assert (result.chi2, result.chi2_p, result.f_p) == (0.0, 1.0, 1.0)
    assert all(pair.p_holm == 1.0 for pair in wilcoxon_holm(same))
    always = friedman(same + np.arange(3))
    assert always.chi2 == pytest.approx(6 * 2)
    assert math.isinf(always.f)
    assert always.f_p == pytest.approx(6.0**-5)  # the chance that six cases agree on the order of three


def paper_columns() -> pd.DataFrame:
    return overall_results().pivot_table(index=["dataset", "setting", "group"], columns="method", values="mean")


def test_the_papers_critical_difference_means_96_cases() -> None:
    said = paper_table("friedman").set_index("quantity")["value"]
    by_cases = {n: round(nemenyi_critical_difference(24, n, 0.05), 2) for n in range(8, 200)}
    assert [n for n, cd in by_cases.items() if cd == said["critical_difference"]] == [96]
    assert by_cases[len(paper_columns())] == 6.43  # 32 printed columns alone do not give the paper's CD


def test_what_the_papers_tables_say_of_its_diagram() -> None:
    result = friedman(paper_columns())
    best, second, third, *_ = result.ranks
    assert (best, second) == ("ndcl", "pgrad")
    assert result.ranks["ndcl"] == pytest.approx(4.42, abs=0.005)
    assert result.ranks["pgrad"] == pytest.approx(7.27, abs=0.005)
    assert result.f_p < result.chi2_p < 1e-15
    # "Only PGrad falls within the non-significant region", at the paper's CD.
    assert result.ranks["pgrad"] - result.ranks["ndcl"] < 3.71 < result.ranks[third] - result.ranks["ndcl"]
    bars = rank_groups(result.ranks, 3.71)
    assert bars[0] == ("ndcl", "pgrad")

"""Who is ranked: 24 methods, their variants, averaged weights."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from longshift.paper.published_tables import overall_results
from longshift.report.figure_sections import rank_section
from longshift.report.findings import summarize
from longshift.report.missing_runs import find_missing
from longshift.report.ranking import RANKED_ROWS, RankedRows, rank_methods
from longshift.report.titles import is_averaged, is_variant, method_title
from longshift.results import as_frame
from longshift.results.selection import choose
from tests.report.fake import row

METHODS = list(dict.fromkeys(overall_results()["method"]))
FULL = ("ndcl_plus", "NDCL, prior")  # variants with every case
STUDY = tuple(f"ndcl v{i}" for i in range(60))  # variants with two cases of twelve
AVERAGED = ("ndcl+ema", "ndcl_plus+ema")


def runs() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    made: list[dict[str, Any]] = []
    for setting in ("GINIDG", "TotalHeavyTail", "Duality"):
        for target in "ACPS":
            study = STUDY if (setting, target) in (("Duality", "A"), ("Duality", "C")) else ()
            for i, method in enumerate((*METHODS, *FULL, *AVERAGED, *study)):
                value = 0.3 + 0.01 * i + 0.02 * float(rng.standard_normal())
                value += 0.2 * is_averaged(method)
                made.append(row(method, 0, target=target, setting=setting, dataset="PACS", value=value))
    return as_frame(made)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("among", "ranked", "aside"),
    [
        ("methods", {*METHODS}, 2 + 60 + 2),
        ("variants", {*METHODS, *FULL}, 2),
        ("all", {*METHODS, *FULL, *AVERAGED}, 0),
    ],
)
def test_rows_that_are_ranked(among: RankedRows, ranked: set[str], aside: int) -> None:
    frame = runs()
    chosen = choose(frame)
    result = rank_methods(chosen, among)
    assert result.significance is not None
    test = result.significance.test
    assert (set(test.ranks), test.cases, len(result.unranked)) == (ranked, 12, aside)
    table = frame.pivot(index=["setting", "target"], columns="method", values="target_accuracy")[sorted(ranked)]
    expected = stats.friedmanchisquare(*(table[name] for name in table.columns))
    assert (test.chi2, test.chi2_p) == pytest.approx((expected.statistic, expected.pvalue), rel=1e-6)
    ranks = table.rank(axis=1, ascending=False).mean()
    assert test.ranks == pytest.approx({str(name): float(rank) for name, rank in ranks.items()})
    k = len(ranked)
    quantile = float(stats.studentized_range.isf(0.05, k, np.inf)) / np.sqrt(2)
    assert result.significance.critical_difference == pytest.approx(quantile * np.sqrt(k * (k + 1) / (6 * 12)))
    section = rank_section(result)
    assert len(re.findall(r"average rank \d", section.body)) == k
    words = " ".join(summarize(chosen, result, find_missing(frame)))
    said = {
        "methods": "62 variants and averaged weights of 2 rows",
        "variants": "averaged weights of 2 rows",
        "all": "",
    }
    for text in (section.body, words):
        if said[among]:
            assert f"Not ranked, only in the tables: {said[among]}." in text
        else:
            assert "only in the tables" not in text
    assert ("EMA" in words) == (among == "all")


@pytest.mark.slow
def test_variants_with_a_few_cases_do_not_cost_the_methods_any() -> None:
    result = rank_methods(choose(runs()))
    assert (result.cases, result.cases_left_out) == (12, 0)
    assert set(result.left_out) == set(STUDY)
    assert "and 48 more" in rank_section(result).body


def test_variants_alone_are_ranked_among_themselves() -> None:
    made = [row(m, 0, target=t, value=v) for m, v in (("ndcl a", 0.4), ("ndcl b", 0.5), ("erm", 0.3)) for t in "abc"]
    assert rank_methods(choose(as_frame(made))).order == ("ndcl b", "ndcl a", "erm")
    few = [r for r in made if r["method"] != "erm" or r["target"] == "a"]
    assert rank_methods(choose(as_frame(few))).order == ("ndcl b", "ndcl a")


def test_where_nothing_would_be_left_all_is_ranked() -> None:
    made = [row(m, 0, target=t, value=v) for m, v in (("ndcl+ema", 0.5), ("erm+ema", 0.4)) for t in "abc"]
    for among in RANKED_ROWS:
        result = rank_methods(choose(as_frame(made)), among)
        assert (result.order, result.unranked) == (("ndcl+ema", "erm+ema"), ())


def test_what_a_variant_is() -> None:
    assert [is_variant(name) for name in ("ndcl", "ndcl+ema", "ndcl_plus", "NDCL, no mixup", "mine")] == [
        False, False, True, True, False,
    ]  # fmt: skip


def test_rows_that_are_not_ranked_take_no_first_place() -> None:
    targets = {"GINIDG": "ACPS", "Duality": "ACPS"}
    made = [
        row(method, 0, target=target, setting=setting, dataset="PACS", value=value)
        for method, value in (("erm", 0.5), ("bsoftmax", 0.6), ("ndcl_plus", 0.7))
        for setting, listed in targets.items()
        for target in listed
        if not (method == "ndcl_plus" and setting == "GINIDG")  # a variant that lacks cases is left out
    ]
    frame = as_frame(made)
    chosen = choose(frame)
    result = rank_methods(chosen)
    assert (result.winner, result.left_out, result.comparisons) == ("bsoftmax", ("ndcl_plus",), 2)
    assert result.firsts == {"bsoftmax": 2, "erm": 0}
    words = " ".join(summarize(chosen, result, find_missing(frame)))
    assert "first in 2 of 2 comparisons" in words
    assert "Another method is better" not in words


def test_a_first_by_rank_that_lies_behind_by_mean_is_not_called_level() -> None:
    values = {"erm": (0.52, 0.62, 0.72, 0.2), "ndcl": (0.51, 0.61, 0.71, 0.89)}  # ERM is first on three of four targets
    made = [
        row(method, trial, target=target, value=value + 0.001 * trial)
        for method, listed in values.items()
        for target, value in zip("ACPS", listed, strict=True)
        for trial in range(3)
    ]
    frame = as_frame(made)
    chosen = choose(frame)
    result = rank_methods(chosen)
    assert (result.winner, result.above) == ("erm", ("ndcl",))
    words = " ".join(summarize(chosen, result, find_missing(frame)))
    assert "Ranks and means disagree: ERM ranks first" in words
    assert "NDCL has the higher mean, 68.1%" in words


def uneven() -> list[dict[str, Any]]:
    """ERM, BoDA and NDCL have three trials, MMD has one; MMD's trial is the easy one for all."""
    level = {"erm": 0.40, "boda": 0.50, "mmd": 0.55, "ndcl": 0.60}
    return [
        row(method, trial, target=target, value=value + 0.2 * (trial == 0) + 0.001 * "abcd".index(target))
        for method, value in level.items()
        for trial in range(1 if method == "mmd" else 3)
        for target in "abcd"
    ]


def test_only_trials_that_all_methods_have_are_ranked() -> None:
    """By all trials that each has, MMD would be first: its only trial is easier than the mean of three."""
    frame = as_frame(uneven())
    means = frame.groupby("method")["target_accuracy"].mean()
    assert means.idxmax() == "mmd"
    chosen = choose(frame)
    result = rank_methods(chosen)
    assert result.order == ("ndcl", "mmd", "boda", "erm")
    easy = frame[frame["trial"] == 0].groupby("method")["target_accuracy"].mean()
    assert result.mean == pytest.approx(easy.to_dict())
    assert result.significance is not None
    assert result.significance.test.ranks == {"ndcl": 1.0, "mmd": 2.0, "boda": 3.0, "erm": 4.0}
    assert result.trials_left_out == ("trial 1", "trial 2")
    sentence = "Ranks use only trials that all ranked methods have. Left out: trial 1 and trial 2."
    assert sentence in rank_section(result).body
    assert sentence in summarize(chosen, result, find_missing(frame))


def test_a_trial_that_lacks_one_case_is_left_out_there_only() -> None:
    made = [r for r in uneven() if r["method"] != "mmd"]
    result = rank_methods(
        choose(as_frame(r for r in made if (r["method"], r["trial"], r["target"]) != ("boda", 1, "c")))
    )
    assert result.trials_left_out == ("trial 1 in 1 of 4 cases",)
    assert (result.cases, len(result.runs)) == (4, 3 * 11)
    assert rank_methods(choose(as_frame(made))).trials_left_out == ()


def test_a_variant_with_fewer_trials_does_not_cost_the_methods_any() -> None:
    made = [r for r in uneven() if r["method"] != "mmd"]
    made += [row("ndcl_plus", trial, target=target, value=0.9) for trial in range(2) for target in "abcd"]
    result = rank_methods(choose(as_frame(made)))
    assert (result.left_out, result.trials_left_out) == (("ndcl_plus",), ())
    assert result.order == ("ndcl", "boda", "erm")


def test_only_a_kind_of_average_after_a_plus_is_one() -> None:
    assert [is_averaged(name) for name in ("ndcl+ema", "a + b+swa", "a + b", "+ema", "ndcl")] == [
        True, True, False, False, False,
    ]  # fmt: skip
    assert [method_title(name) for name in ("ndcl+ema", "erm+mixup")] == ["NDCL + EMA", "erm+mixup"]

"""Who is ranked: 24 methods, their variants, averaged weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from longshift.paper.published_tables import overall_results
from longshift.report.ranking import RankedRows, rank_methods, without_gaps
from longshift.report.titles import is_averaged, method_title
from longshift.sweep import as_frame, choose
from tests.report.fake import frame, row

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
    ],
)
def test_rows_that_are_ranked(among: RankedRows, ranked: set[str], aside: int) -> None:
    made = runs()
    result = rank_methods(choose(made), among)
    assert result.significance is not None
    test = result.significance.test
    assert (set(test.ranks), test.cases, len(result.unranked)) == (ranked, 12, aside)
    table = made.pivot(index=["setting", "target"], columns="method", values="target_accuracy")[sorted(ranked)]
    expected = stats.friedmanchisquare(*(table[name] for name in table.columns))
    assert (test.chi2, test.chi2_p) == pytest.approx((expected.statistic, expected.pvalue), rel=1e-6)
    ranks = table.rank(axis=1, ascending=False).mean()
    assert test.ranks == pytest.approx({str(name): float(rank) for name, rank in ranks.items()})
    k = len(ranked)
    quantile = float(stats.studentized_range.isf(0.05, k, np.inf)) / np.sqrt(2)
    assert result.significance.critical_difference == pytest.approx(quantile * np.sqrt(k * (k + 1) / (6 * 12)))


def test_variants_alone_are_ranked_among_themselves() -> None:
    made = [row(m, 0, target=t, value=v) for m, v in (("ndcl a", 0.4), ("ndcl b", 0.5), ("erm", 0.3)) for t in "abc"]
    assert rank_methods(choose(as_frame(made))).order == ("ndcl b", "ndcl a", "erm")
    few = [r for r in made if r["method"] != "erm" or r["target"] == "a"]
    assert rank_methods(choose(as_frame(few))).order == ("ndcl b", "ndcl a")


def test_where_nothing_would_be_left_all_is_ranked() -> None:
    made = [row(m, 0, target=t, value=v) for m, v in (("ndcl+ema", 0.5), ("erm+ema", 0.4)) for t in "abc"]
    result = rank_methods(choose(as_frame(made)))
    assert (result.order, result.unranked) == (("ndcl+ema", "erm+ema"), ())


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
    made = as_frame(uneven())
    means = made.groupby("method")["target_accuracy"].mean()
    assert means.idxmax() == "mmd"
    result = rank_methods(choose(made))
    assert result.order == ("ndcl", "mmd", "boda", "erm")
    easy = made[made["trial"] == 0].groupby("method")["target_accuracy"].mean()
    assert result.mean == pytest.approx(easy.to_dict())
    assert result.significance is not None
    assert result.significance.test.ranks == {"ndcl": 1.0, "mmd": 2.0, "boda": 3.0, "erm": 4.0}
    assert result.trials_left_out == 8


def test_a_trial_that_lacks_one_case_is_left_out_there_only() -> None:
    made = [r for r in uneven() if r["method"] != "mmd"]
    result = rank_methods(
        choose(as_frame(r for r in made if (r["method"], r["trial"], r["target"]) != ("boda", 1, "c")))
    )
    assert result.trials_left_out == 1
    assert (result.cases, len(result.runs)) == (4, 3 * 11)
    assert rank_methods(choose(as_frame(made))).trials_left_out == 0


def test_a_variant_with_fewer_trials_does_not_cost_the_methods_any() -> None:
    made = [r for r in uneven() if r["method"] != "mmd"]
    made += [row("ndcl_plus", trial, target=target, value=0.9) for trial in range(2) for target in "abcd"]
    result = rank_methods(choose(as_frame(made)))
    assert (result.left_out, result.trials_left_out) == (("ndcl_plus",), 0)
    assert result.order == ("ndcl", "boda", "erm")


def test_only_a_kind_of_average_after_a_plus_is_one() -> None:
    assert [is_averaged(name) for name in ("ndcl+ema", "a + b+swa", "a + b", "+ema", "ndcl")] == [
        True, True, False, False, False,
    ]  # fmt: skip
    assert [method_title(name) for name in ("ndcl+ema", "erm+mixup")] == ["NDCL + EMA", "erm+mixup"]


def test_the_winner_and_its_lead() -> None:
    runs = frame(trials=3, draws=1)
    result = rank_methods(choose(runs))
    assert (result.winner, result.cases) == ("ndcl", 2)
    leads = []
    for trial in range(3):
        one = runs[runs["trial"] == trial]
        value = {m: float(one.loc[one["method"] == m, "target_accuracy"].mean()) for m in result.order[:2]}
        leads.append(value["ndcl"] - value["boda"])
    assert result.lead is not None
    assert result.lead.mean == pytest.approx(sum(leads) / 3)
    assert result.lead.stderr == pytest.approx(np.std(leads, ddof=1) / len(leads) ** 0.5)
    assert result.lead.p == pytest.approx(stats.ttest_1samp(leads, 0).pvalue)


def test_methods_within_a_standard_error_are_level() -> None:
    made = [row("ndcl", t, target=x, value=0.60 + 0.03 * (t - 1)) for t in range(3) for x in "abc"]
    made += [row("boda", t, target=x, value=0.59 + 0.01 * (1 - t)) for t in range(3) for x in "abc"]
    made += [row("erm", t, target=x, value=0.40) for t in range(3) for x in "abc"]
    result = rank_methods(choose(as_frame(made)))
    assert (result.winner, result.level, result.above) == ("ndcl", ("boda",), ())


def test_the_best_rank_with_the_lower_mean_is_no_lead() -> None:
    """BSoftmax is first on five of eight targets, NDCL-plus has the higher mean by less than a standard error."""
    by = dict.fromkeys("abcde", 0.01) | dict.fromkeys("fgh", -(0.05 + 8 * 0.0003) / 3)
    shift = {0: 0.006, 1: -0.006, 2: 0.0}  # of BSoftmax, by trial: a standard error of 0.35 points
    made = [row("bsoftmax", t, target=x, value=0.5523 + by[x] + s) for t, s in shift.items() for x in by]
    made += [row("ndcl_plus", t, target=x, value=0.5523) for t in shift for x in by]
    made += [row("erm", t, target=x, value=0.3) for t in shift for x in by]
    result = rank_methods(choose(as_frame(made)))
    assert (result.winner, result.level, result.above) == ("bsoftmax", ("ndcl_plus",), ())
    assert result.mean["bsoftmax"] < result.mean["ndcl_plus"]
    assert result.lead is not None
    assert result.lead.p == pytest.approx(stats.ttest_1samp([0.0057, -0.0063, -0.0003], 0).pvalue)


def test_methods_without_a_common_trial_cannot_be_compared() -> None:
    apart = [row("ndcl", 0, target=x, value=0.7) for x in "ab"] + [row("erm", 1, target=x, value=0.5) for x in "ab"]
    result = rank_methods(choose(as_frame(apart)))
    assert (result.comparable, result.significance) == (False, None)


def test_only_cases_without_gaps_are_ranked() -> None:
    """One method lacks half of the cases and one case is lacked by most methods: both are left out, and named."""
    values = {"erm": 0.4, "boda": 0.5, "ndcl": 0.6, "mmd": 0.7}
    made = [row(m, t, target=x, value=v) for m, v in values.items() for t in range(2) for x in "abcdef"]
    made = [r for r in made if not (r["method"] == "mmd" and r["target"] in "abc")]
    made = [r for r in made if not (r["target"] == "f" and r["method"] in ("erm", "boda"))]
    result = rank_methods(choose(as_frame(made)))
    assert (result.order, result.left_out, result.cases_left_out) == (("ndcl", "boda", "erm"), ("mmd",), 1)
    assert result.significance is not None
    assert (result.significance.test.cases, set(result.significance.test.ranks)) == (5, {"erm", "boda", "ndcl"})


def test_leaving_out_ends_without_gaps_and_keeps_what_is_full() -> None:
    rng = np.random.default_rng(0)
    for _ in range(30):
        scores = pd.DataFrame(rng.random((rng.integers(1, 7), 3)), columns=list("abc"))
        gaps = scores.mask(rng.random(scores.shape) < 0.3)
        found = without_gaps(gaps)
        assert not found.isna().any().any()
        assert found.size > 0 or gaps.isna().all().all()
        assert without_gaps(scores).shape == scores.shape

"""What held-out sites tell about a new site, in numbers; the words are in tests/golden."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from longshift.fitting.facts import (
    LOGISTIC,
    MAJORITY,
    SiteScore,
    better_baseline,
    better_style,
    class_scores,
    compare_methods,
    expect,
    hardest_site,
    known_and_unseen,
    same_site_gaps,
    untried_style,
    weak_classes,
)
from longshift.fitting.run import FitResult
from longshift.training import RunConfig
from tests.fitting.hand_made import full_summary, poor_summary
from tests.golden import check_golden


def score(site: str, accuracy: float, balanced: float, confusion: list[list[int]] | None = None) -> SiteScore:
    return SiteScore(site, 50, accuracy, balanced, accuracy, 0.5, {}, tuple(map(tuple, confusion or [[1]])))


def test_what_the_terminal_says() -> None:
    plan: Any = None
    texts = []
    for found in (full_summary(), poor_summary(), replace(full_summary(), labels=None)):
        table = FitResult(Path("fits/skin"), plan, found).to_text()
        assert len(table.splitlines()) <= 8
        texts.append("\n".join([*found.findings, table]))
    check_golden("fit.txt", "\n".join(texts))


def test_few_sites_give_no_number() -> None:
    assert not expect([0.92, 0.9], [500, 500]).enough
    one, five = expect([0.9], [50]), expect([0.7, 0.8, 0.85, 0.6, 0.75], [100] * 5)
    assert one.high - one.low > 0.9
    assert five.enough
    assert (five.low, five.high) == pytest.approx((0.48, 0.90), abs=0.01)


def test_seen_and_unseen_accuracy_are_those_of_the_same_sites() -> None:
    rows = [
        SiteScore("a", 50, 0.6, 0, 0.9, 0.5, {}, ((1,),), {"b": 0.8, "c": 1.0}),
        SiteScore("b", 50, 0.7, 0, 0.9, 0.5, {}, ((1,),), {"a": 0.9, "c": None}),
        SiteScore("c", 50, 0.8, 0, 0.9, 0.5, {}, ((1,),), {"a": 0.7, "b": 0.9}),
    ]
    assert same_site_gaps(rows) == {"a": (0.8, 0.6), "b": (pytest.approx(0.85), 0.7), "c": (1.0, 0.8)}
    assert known_and_unseen(rows) == pytest.approx((0.8833, 0.7), abs=1e-4)
    assert known_and_unseen(rows[:1]) == (0.9, 0.6)


def test_classes() -> None:
    rows = [score("a", 0, 0, [[8, 2, 0], [0, 0, 0], [3, 1, 1]]), score("b", 0, 0, [[9, 1, 0], [0, 0, 0], [2, 2, 1]])]
    found = class_scores(("x", "y", "z"), rows)
    assert [(c.name, c.n, c.right, c.taken_for) for c in found] == [("z", 10, 2, "x"), ("x", 20, 17, "y")]
    assert [c.precision for c in found] == [1.0, 17 / 22]
    assert [c.name for c in weak_classes(found)] == ["z"]
    assert weak_classes(found[1:]) == []  # the only class is the best one


def test_a_class_of_one_site_is_told_apart_from_a_weak_one() -> None:
    rows = [score("a", 0, 0, [[8, 2, 0], [1, 1, 0], [3, 2, 0]]), score("b", 0, 0, [[9, 1, 0], [0, 0, 0], [0, 0, 0]])]
    found = class_scores(("x", "y", "z"), rows, {"z": "a"})
    assert [(c.name, c.alone) for c in found] == [("z", "a"), ("y", ""), ("x", "")]
    (weak,) = weak_classes(found)
    assert (weak.name, weak.unsure) == ("y", True)  # one of two samples


def test_few_samples_cannot_show_that_a_site_is_hard() -> None:
    rows = [replace(score("a", 0.45, 0), n=9), score("b", 0.6, 0), score("c", 0.65, 0)]
    assert hardest_site(rows) == (rows[0], True)
    rows[0] = replace(rows[0], n=9000)
    assert hardest_site(rows) == (rows[0], False)


def test_a_class_of_one_site_does_not_condemn_a_model() -> None:
    full, poor = full_summary(), poor_summary()
    assert full.warning == ""
    assert full.unseen.classes == 2
    assert poor.warning
    assert (full.low_from_scratch, poor.low_from_scratch) == (False, True)
    learned = {poor.title: [replace(row, seen=0.9) for row in poor.own]}  # at the known sites only
    assert replace(poor, scores=learned).low_from_scratch


@pytest.mark.parametrize(
    ("own", "other", "verdict", "wins"),
    [
        ((0.8, 0.7, 0.9), (0.6, 0.6, 0.8), "better", 3),
        ((0.5, 0.5, 0.5), (0.6, 0.6, 0.8), "worse", 0),
        ((0.601, 0.6), (0.6, 0.602), "same", 1),
        ((0.9, 0.3), (0.5, 0.6), "same", 1),
    ],
)
def test_verdicts(own: tuple[float, ...], other: tuple[float, ...], verdict: str, wins: int) -> None:
    scores = {
        "NDCL": [score(str(i), v + 0.1, v) for i, v in enumerate(own)],
        "ERM": [score(str(i), v + 0.1, v) for i, v in enumerate(other)],
        "BSoftmax": [score(str(i), 0, 0.1) for i, _ in enumerate(other)],
    }
    found = compare_methods("NDCL", scores)
    assert found is not None
    assert (found.best, found.verdict, found.wins) == ("ERM", verdict, wins)
    assert (found.p_value is None) is (len(own) < 3)
    assert compare_methods("NDCL", {"NDCL": scores["NDCL"]}) is None


def test_a_simple_model_must_be_better_in_both_ways_to_condemn_a_model() -> None:
    own = [score("a", 0.6, 0.5), replace(score("b", 0.4, 0.4), n=500)]
    common = [score("a", 0.9, 0.2), score("b", 0.8, 0.2)]  # most samples are of one class
    assert better_baseline(own, {MAJORITY: common}) == ""
    close = [score("a", 0.603, 0.504), score("b", 0.404, 0.404)]
    assert better_baseline(own, {MAJORITY: common, LOGISTIC: close}) == ""
    ahead = [own[0], score("b", 0.5, 0.45)]  # by 5 points; the standard error is 3 points, and 7 of 100 samples
    assert better_baseline(own, {MAJORITY: common, LOGISTIC: ahead}) == LOGISTIC
    assert better_baseline([replace(row, n=50) for row in own], {MAJORITY: common, LOGISTIC: ahead}) == ""
    assert better_baseline([score("a", 0.1, 0.1), score("b", 0.1, 0.1)], {MAJORITY: common}) == MAJORITY


@pytest.mark.parametrize(
    ("off", "on", "style", "tie"),
    [
        ((0.5, 0.7), (0.6, 0.7), "both", False),
        ((0.6, 0.7), (0.5, 0.7), "none", False),
        ((0.5, 0.7), (0.7, 0.5), "none", True),
        ((0.1, 0.2, 0.3), (0.3, 0.2, 0.1), "none", True),  # equal but for rounding
        ((0.9166,), (0.9168,), "both", False),
    ],
)
def test_the_better_style_is_chosen_and_off_in_a_tie(
    off: tuple[float, ...], on: tuple[float, ...], style: str, tie: bool
) -> None:
    scores = {"none": [score("s", 0, v) for v in off], "both": [score("s", 0, v) for v in on]}
    found = better_style(scores, {})
    assert (found.style, found.tie, found.sites) == (style, tie, len(on))
    known = {
        name: [replace(row, validation=0.9 if name == "none" else 0.6) for row in rows] for name, rows in scores.items()
    }
    assert better_style(known, {}).style == "none"  # what is gained unseen is lost on validation samples
    lost = better_style({"none": scores["none"]}, {"both": ["south"], "none": []})
    assert (lost.style, lost.why, lost.diverged) == ("none", "diverged", ("south",))


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({}, "small images"),
        ({"image_size": 96, "trainable": "head"}, "head"),
        ({"data": "pacs-features"}, "vectors"),
        ({"image_size": 96, "method": "bsoftmax"}, None),  # it does not mix styles
    ],
)
def test_why_no_style_is_tried(values: dict[str, Any], why: str | None) -> None:
    found = untried_style(RunConfig.model_validate({"method": "ndcl_plus", "target": "", **values}), asked=False)
    assert (found.why if found else None) == why

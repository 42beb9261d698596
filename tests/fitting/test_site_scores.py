"""What held-out sites tell about a new site, in numbers and in words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from longshift.fitting.fit_summary import cost_of_a_new_site, hardest, name_weak, unlearned
from longshift.fitting.site_scores import (
    ClassScore,
    SiteScore,
    accuracy_without,
    class_scores,
    expect,
    same_site_gaps,
    verdict,
    weak_classes,
)


def score(site: str, accuracy: float, balanced: float, confusion: list[list[int]] | None = None) -> SiteScore:
    return SiteScore(site, 50, accuracy, balanced, None, {}, tuple(map(tuple, confusion or [[1]])))


def test_with_few_sites_no_number_is_expected() -> None:
    found = expect([0.92, 0.9], [500, 500])
    assert not found.enough
    assert found.low < 0.5
    assert found.words() == (
        "anywhere from 43 to 99% (80% interval; 90%, 92% at the 2 held-out sites, too few to expect a number)"
    )
    assert found.to_json()["enough_sites"] is False
    one = expect([0.9], [50])
    assert one.words() == "unknown (90% at the only held-out site, which says little about another)"
    assert one.meaning() == ""
    assert found.meaning().endswith("; with so few sites it rests mostly on how sites of other data differ.")
    assert one.high - one.low > 0.9


def test_with_five_sites_there_is_a_number_and_an_interval() -> None:
    found = expect([0.7, 0.8, 0.85, 0.6, 0.75], [100] * 5)
    assert found.enough
    assert found.words() == "about 74% (80% interval 48 to 90%, from 5 held-out sites)"
    assert found.meaning() == (
        "The interval contains the accuracy at one more site with probability 80%, if that site differs from these as "
        "they differ from each other."
    )


def test_seen_and_unseen_accuracy_are_those_of_the_same_sites() -> None:
    rows = [
        SiteScore("a", 50, 0.6, 0, 0.9, {}, ((1,),), {"b": 0.8, "c": 1.0}),
        SiteScore("b", 50, 0.7, 0, 0.9, {}, ((1,),), {"a": 0.9, "c": None}),
        SiteScore("c", 50, 0.8, 0, 0.9, {}, ((1,),), {"a": 0.7, "b": 0.9}),
    ]
    assert same_site_gaps(rows) == {"a": (0.8, 0.6), "b": (pytest.approx(0.85), 0.7), "c": (1.0, 0.8)}
    assert "reach 88% on average while a model knows them and 70% while held out: a new site costs about 18 points" in (
        cost_of_a_new_site(rows)
    )
    assert cost_of_a_new_site(rows[:1]).startswith("The model without a reaches 90% on other samples of its")


def test_classes() -> None:
    rows = [score("a", 0, 0, [[8, 2, 0], [0, 0, 0], [3, 1, 1]]), score("b", 0, 0, [[9, 1, 0], [0, 0, 0], [2, 2, 1]])]
    found = class_scores(("x", "y", "z"), rows)
    assert [(c.name, c.n, c.recall, c.taken_for) for c in found] == [("z", 10, 0.2, "x"), ("x", 20, 0.85, "y")]
    assert found[0].words() == "2 of 10 correct (20%), most often misclassified as x"
    assert [c.name for c in weak_classes(found)] == ["z"]
    assert weak_classes(found[1:]) == []  # the only class is the best one


def test_a_class_of_one_site_is_told_apart_from_a_weak_one() -> None:
    rows = [score("a", 0, 0, [[8, 2, 0], [1, 1, 0], [3, 2, 0]]), score("b", 0, 0, [[9, 1, 0], [0, 0, 0], [0, 0, 0]])]
    found = class_scores(("x", "y", "z"), rows, {"z": "a"})
    assert [(c.name, c.alone) for c in found] == [("z", "a"), ("y", ""), ("x", "")]
    (weak,) = weak_classes(found)
    assert weak.words() == (
        "1 of 2 correct (50%), most often misclassified as x (not clearly weak: 80% interval 16 to 84%, from the "
        "sample size alone)"
    )
    assert weak.words() in name_weak([weak])
    assert replace(weak, unsure=False).words() == "1 of 2 correct (50%), most often misclassified as x"
    assert accuracy_without(("x", "y", "z"), rows, {"z"}) == pytest.approx((9 / 12 + 9 / 10) / 2)


def test_many_weak_classes_are_counted() -> None:
    names = [f"class {k}" for k in range(8)]
    confusion = np.diag([9] * 7 + [0])
    confusion[:7] = np.roll(confusion[:7], 1, axis=1)  # all wrong but for the last
    confusion[7, 7] = 9
    found = weak_classes(class_scores(names, [score("a", 0, 0, confusion.tolist())]))
    assert [weak.name for weak in found] == names[:7]
    assert name_weak(found).endswith("class 4: 0 of 9 correct (0%), most often misclassified as class 5; and 2 more.")
    assert name_weak(found[:1]).startswith("Lowest-scoring class over all held-out sites: class 0: ")


def test_many_classes_of_one_site_are_counted() -> None:
    alone = [ClassScore(f"class {k}", 2, 0.0, "", "north") for k in range(40)]
    assert "class 4 (only at north) and 35 more. No training samples of them were left" in unlearned(alone, 0.5)
    assert "Their 80 samples count as misclassified above; without them, expect 50% accuracy. The" in unlearned(
        alone, 0.5
    )


def test_a_site_that_has_nothing_but_classes_of_its_own() -> None:
    rows = [score("a", 0, 0, [[0, 0], [3, 0]])]
    assert accuracy_without(("x", "y"), rows, {"y"}) is None
    assert "Its 3 samples count as misclassified above. The final model" in unlearned(
        class_scores(("x", "y"), rows, {"y": "a"}), None
    )


def test_no_site_is_the_hardest_if_all_are_alike() -> None:
    rows = [score("a", 0.8, 0, [[8, 2], [2, 8]]), score("b", 0.8, 0, [[8, 2], [2, 8]])]
    assert hardest(rows) == "All sites were equally hard: 80% accuracy when held out."
    rows[1] = score("b", 0.9, 0, [[9, 1], [1, 9]])
    assert hardest(rows) == "The hardest site was a: 80% accuracy when held out."


def test_the_hardest_site_may_not_be_hard() -> None:
    """By the rule of the section on low scores: 15 points below the mean, or below one half."""
    rows = [replace(score("a", 0.45, 0), n=9), score("b", 0.6, 0), score("c", 0.65, 0)]
    doubt = "not clearly hard: 9 samples are too few to tell"
    assert hardest(rows) == f"The hardest site was a: 45% accuracy when held out ({doubt})."
    rows[0] = replace(rows[0], n=9000)
    assert hardest(rows) == "The hardest site was a: 45% accuracy when held out."


def test_the_cost_of_a_new_site_is_the_difference_of_the_printed_numbers() -> None:
    rows = [SiteScore("a", 50, 0.484, 0, 0.916, {}, ((1,),))]
    assert "reaches 92% on other samples of its training sites and 48% at a: a new site costs about 44 points." in (
        cost_of_a_new_site(rows)
    )


@pytest.mark.parametrize(
    ("own", "other", "start", "part"),
    [
        (
            (0.8, 0.7, 0.9),
            (0.6, 0.6, 0.8),
            "NDCL is better here: 80.0% against 66.7% for ERM",
            "better at 3 of 3 sites",
        ),
        ((0.5, 0.5, 0.5), (0.6, 0.6, 0.8), "NDCL is worse here", "better at 0 of 3"),
        (
            (0.5, 0.5, 0.5),
            (0.6, 0.6, 0.8),
            "NDCL is worse here",
            "fit again with --method erm and another --out",
        ),
        ((0.5, 0.5), (0.6, 0.6), "NDCL is worse here", "With so few sites, chance cannot be ruled out."),
        ((0.5, 0.5), (0.6, 0.6), "NDCL is worse", "Accuracy over samples: NDCL 60.0%, ERM 70.0%. To use ERM"),
        ((0.601, 0.6), (0.6, 0.602), "NDCL makes no reliable difference", "The simpler method is enough"),
        ((0.9, 0.3), (0.5, 0.6), "NDCL makes no reliable difference", "better at 1 of 2"),
    ],
)
def test_verdicts(own: tuple[float, ...], other: tuple[float, ...], start: str, part: str) -> None:
    scores = {
        "NDCL": [score(str(i), v + 0.1, v) for i, v in enumerate(own)],
        "ERM": [score(str(i), v + 0.1, v) for i, v in enumerate(other)],
        "BSoftmax": [score(str(i), 0, 0.1) for i, _ in enumerate(other)],
    }
    said = verdict("NDCL", scores)
    assert said.startswith(start)
    assert part in said
    assert verdict("NDCL", {"NDCL": scores["NDCL"]}) == ""

"""The estimate for a new site, and its words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from longshift.inference import HeldOutSite, SiteKnowledge, class_excess, estimate_site, odd_mix
from longshift.inference.site_estimate import no_estimate
from tests.inference.site_outputs import known, reference, signals


def test_the_words_compare_with_the_hardest_site_and_warn_of_a_far_one() -> None:
    sites = SiteKnowledge((HeldOutSite("x", 0.7, signals(0.3)), HeldOutSite("y", 0.5, signals(0.6, 0.5))), reference())
    near = estimate_site(sites, signals(0.4, 0.8), 0.1)
    assert near is not None
    assert not near.far
    assert near.warning() == ""
    first, second = near.sentences()
    assert first.startswith("Expected accuracy here: ")
    assert "from 200 predictions without labels and the errors of such estimates at the 2 held-out sites" in first
    assert second == "That is above the hardest held-out site, y (50% correct there)."
    far = estimate_site(sites, signals(0.9, 0.3), 0.1)
    assert far is not None
    assert far.sentences()[2].startswith("That is below the hardest")
    assert far.sentences()[3].startswith(
        "The interval is wider because the site is farther from the training sites than any held-out one was (other"
    )
    assert (
        "its distance to the nearest training site, b, is 0.90; among the held-out sites, the largest such distance "
        "was 0.60 (y)."
    ) in far.sentences()[0]
    assert far.to_json()["farther_than_any_held_out"] is True


@pytest.mark.parametrize(("distance", "dominance"), [(0.9, 0.1), (0.4, 0.5)])
def test_a_warning_marks_the_number_and_drops_the_reassuring_comparison(distance: float, dominance: float) -> None:
    sites = SiteKnowledge((HeldOutSite("x", 0.7, signals(0.3)), HeldOutSite("y", 0.5, signals(0.6, 0.5))), reference())
    calm, found = (estimate_site(sites, signals(d, 0.8), over) for d, over in ((0.4, 0.1), (distance, dominance)))
    assert calm is not None
    assert found is not None
    assert "unreliable" not in calm.short() + calm.statements()[0]
    share = f"{100 * found.accuracy.mean:.0f}%"
    reach = f"{100 * found.accuracy.low:.0f} to {100 * found.accuracy.high:.0f}%"
    assert found.short() == f"{share}, unreliable here ({reach})"
    assert found.statements()[0].startswith(f"Expected accuracy here: {share}, unreliable here (80% interval {reach})")
    assert found.accuracy.mean > found.hardest.accuracy
    assert "hardest held-out site" not in " ".join(found.sentences())
    assert found.to_json()["hardest_held_out"] == {"site": "y", "accuracy": 0.5}


def test_all_reasons_for_a_wider_interval_are_told_with_the_interval_that_would_be_usual() -> None:
    sites = SiteKnowledge((HeldOutSite("x", 0.7, signals(0.3)), HeldOutSite("y", 0.5, signals(0.6, 0.5))), reference())
    found, calm = (estimate_site(sites, signals(d, 0.6, n), over) for d, n, over in ((0.9, 25, 0.7), (0.5, 100, 0.3)))
    assert found is not None
    assert calm is not None
    assert calm.doubt.reasons() == []
    assert calm.usual == calm.accuracy
    value = found.to_json()
    assert value["wider_because"] == found.doubt.reasons()
    assert len(value["wider_because"]) == 3
    (told,) = [line for line in value["sentences"] if line.startswith("The interval is wider because ")]
    far, dominated, few = value["wider_because"]
    assert told.startswith(f"The interval is wider because {far}, {dominated} and {few} (otherwise ")
    usual = value["otherwise"]
    assert f"(otherwise {100 * usual['low']:.0f} to {100 * usual['high']:.0f}%)" in told
    assert value["expected_accuracy"]["low"] < usual["low"] < usual["high"] < value["expected_accuracy"]["high"]
    assert value["expected_accuracy"]["mean"] == usual["mean"]


def test_a_class_that_takes_over_is_named() -> None:
    counts, classes = [[10, 10, 10], [4, 10, 16]], ("cat", "dog", "cow")
    said = odd_mix(classes, class_excess(counts, np.repeat([0, 1, 2], [80, 10, 10])), 100)
    assert said.startswith("80% of the predictions are cat, which has at most 33% of the samples of any training site")
    assert said.endswith("or many of these predictions are wrong. Label some samples to check it.")
    assert odd_mix(classes, class_excess(counts, np.repeat([0, 1, 2], [60, 20, 20])), 100) == ""
    assert odd_mix(classes, class_excess(counts, np.zeros(5, dtype=np.int64)), 5) == ""


def test_few_samples_give_no_estimate() -> None:
    assert estimate_site(known(), signals(0.3, n=19), 0.0) is None
    assert no_estimate(known(), False, 19).endswith("expected at least 20 samples of it in one call, got 19.")
    assert no_estimate(known(), False, 20) == no_estimate(None, False, 19) == ""


def test_an_adapted_model_says_why_it_has_no_estimate() -> None:
    assert no_estimate(None, True, 500).startswith("No estimate for this site: the model was adapted")


def test_a_site_whose_model_saw_a_single_site_convinces_less() -> None:
    alone = replace(signals(0.3), distances={"a": 0.3})
    for found, weight in ((signals(0.3), 1.0), (alone, 0.3)):
        assert HeldOutSite("x", 0.2, found).evidence().weight == weight

"""The estimate for a new site: signals, what is kept with a model, and the words."""

from __future__ import annotations

from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from longshift.errors import LongshiftError
from longshift.files import read_json, write_json, write_sealed
from longshift.inference import (
    HeldOutSite,
    Reference,
    Signals,
    SiteKnowledge,
    SureRule,
    choose_sure,
    estimate_site,
    make_reference,
    novelty,
    odd_mix,
    read_knowledge,
    read_signals,
    write_knowledge,
)


def outputs(n: int, sharp: float, shift: float, seed: int) -> tuple[Any, Any, Any]:
    """Logits, labels and features; the sharper the logits, the more of them are right."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, n)
    logits = rng.normal(0, 1, (n, 3))
    logits[np.arange(n), labels] += sharp
    features = rng.normal(0, 1, (n, 6)) + np.array([6, 6, 6, 0, 0, 0])
    return logits, labels, features + shift * np.array([-1, -1, -1, 1, 1, 1])


def reference(seed: int = 0) -> Reference:
    logits, labels, features = outputs(120, 3.0, 0.0, seed)
    return make_reference(logits, labels, features, ["a"] * 60 + ["b"] * 60, 1.0)


def signals(nearest: float, share: float = 0.7, n: int = 200) -> Signals:
    return Signals(n, share, share, share, {"a": nearest + 0.1, "b": nearest}, 0.0)


def test_signals_of_the_samples_of_the_reference_give_their_accuracy() -> None:
    logits, labels, features = outputs(120, 3.0, 0.0, 0)
    found = read_signals(reference(), logits, features, 1.0)
    right = float((logits.argmax(1) == labels).mean())
    assert found.thresholded == pytest.approx(right)
    assert found.difference == pytest.approx(right)
    assert set(found.distances) == {"a", "b"}
    assert found.nearest < 0.2


def test_a_less_sure_and_farther_site_has_a_lower_estimate_and_a_larger_distance() -> None:
    known = reference()
    easy, hard = (read_signals(known, *outputs(300, sharp, shift, 5)[::2], 1.0) for sharp, shift in ((3, 0), (0.5, 3)))
    for name in ("confidence", "thresholded", "difference"):
        assert getattr(hard, name) < getattr(easy, name) - 0.1
    assert hard.nearest > easy.nearest + 1
    assert hard.unlike > easy.unlike


def test_novelty_of_the_known_samples_is_below_one() -> None:
    _, _, features = outputs(120, 3.0, 0.0, 0)
    assert (novelty(reference(), features) <= 1.0).mean() >= 0.98


def test_what_is_kept_is_read_again(tmp_path: Path) -> None:
    held = HeldOutSite("a", 0.8, signals(0.3))
    write_knowledge(tmp_path, SiteKnowledge((held,), reference(), SureRule(0.6, 0.92, 0.7)), "w")
    found = read_knowledge(tmp_path, "w")
    assert found is not None
    assert found.held_out == (held,)
    assert found.sure == SureRule(0.6, 0.92, 0.7)
    assert found.reference.threshold == reference().threshold
    again = read_signals(found.reference, *outputs(300, 1.0, 1.0, 5)[::2], 1.0)
    first = read_signals(reference(), *outputs(300, 1.0, 1.0, 5)[::2], 1.0)
    assert again.distances == pytest.approx(first.distances, rel=1e-4)


def test_a_model_of_train_has_no_knowledge(tmp_path: Path) -> None:
    assert read_knowledge(tmp_path, "w") is None


def known(found: Signals | None = None) -> SiteKnowledge:
    return SiteKnowledge((HeldOutSite("a", 0.8, found or signals(0.3)),), reference())


@pytest.mark.parametrize("change", [{"held_out": []}, {"schema": 7}, {"reference": {}}, {"sure": 3}])
def test_damaged_knowledge_is_named(tmp_path: Path, change: dict[str, Any]) -> None:
    write_knowledge(tmp_path, known(), "w")
    write_sealed(tmp_path / "new_site.json", {**read_json(tmp_path / "new_site.json"), **change})
    with pytest.raises(LongshiftError, match=r"new_site\.json .* is damaged"):
        read_knowledge(tmp_path, "w")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n": -1}, "expected samples"),
        ({"distances": {}}, "expected a distance to each training site"),
        ({"confidence": 1.5}, "expected shares from 0 to 1"),
        ({"distances": {"a": -1.0}}, "expected finite distances"),
    ],
)
def test_numbers_that_no_fit_writes_are_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    write_knowledge(tmp_path, known(replace(signals(0.3), **change)), "w")
    with pytest.raises(LongshiftError, match=message):
        read_knowledge(tmp_path, "w")


def test_features_of_two_lengths_are_refused(tmp_path: Path) -> None:
    whole = reference()
    write_knowledge(tmp_path, replace(known(), reference=replace(whole, seen=whole.seen[:, :4])), "w")
    with pytest.raises(LongshiftError, match="expected features of one length"):
        read_knowledge(tmp_path, "w")


def test_edited_numbers_other_features_and_another_model_are_noticed(tmp_path: Path) -> None:
    write_knowledge(tmp_path, known(), "w")
    with pytest.raises(LongshiftError, match="got those of another one"):
        read_knowledge(tmp_path, "v")
    numbers = read_json(tmp_path / "new_site.json")
    write_json(tmp_path / "new_site.json", {**numbers, "sure": {"threshold": 0.3, "accuracy": 1.0, "coverage": 1.0}})
    with pytest.raises(LongshiftError, match="was edited"):
        read_knowledge(tmp_path, "w")
    write_json(tmp_path / "new_site.json", numbers)
    assert read_knowledge(tmp_path, "w") is not None
    features = tmp_path / "new_site.safetensors"
    features.write_bytes(features.read_bytes()[:-2] + b"zz")
    with pytest.raises(LongshiftError, match=r"expected the new_site\.safetensors that was written with it"):
        read_knowledge(tmp_path, "w")


def test_a_fit_that_learned_nothing_leaves_no_old_numbers(tmp_path: Path) -> None:
    write_knowledge(tmp_path, known(), "w")
    write_knowledge(tmp_path, None, "w")
    assert list(tmp_path.iterdir()) == []


def test_features_beyond_half_precision_stay_finite(tmp_path: Path) -> None:
    whole = reference()
    write_knowledge(tmp_path, replace(known(), reference=replace(whole, seen=1e5 * whole.seen)), "w")
    found = read_knowledge(tmp_path, "w")
    assert found is not None
    np.testing.assert_allclose(found.reference.seen, 1e5 * whole.seen, rtol=1e-6)


def test_the_words_compare_with_the_hardest_site_and_warn_of_a_far_one() -> None:
    known = SiteKnowledge((HeldOutSite("x", 0.7, signals(0.3)), HeldOutSite("y", 0.5, signals(0.6, 0.5))), reference())
    near = estimate_site(known, signals(0.4, 0.8))
    assert near is not None
    assert not near.far
    assert near.warning() == ""
    first, second = near.sentences()
    assert first.startswith("Expected accuracy here: ")
    assert "from 200 predictions without labels and the errors of such estimates at the 2 held-out sites" in first
    assert second == "That is above the hardest held-out site, y (50 % correct there)."
    far = estimate_site(known, signals(0.9, 0.3))
    assert far is not None
    assert far.sentences()[1].startswith("That is below the hardest")
    assert "distance 0.90 to b, the nearest; at most 0.60, for y" in far.sentences()[2]
    assert far.to_json()["farther_than_any_held_out"] is True


def test_a_class_that_takes_over_is_named() -> None:
    counts = [[10, 10, 10], [4, 10, 16]]
    said = odd_mix(("cat", "dog", "cow"), counts, np.repeat([0, 1, 2], [80, 10, 10]))
    assert said.startswith(
        "80 % of the predictions are cat, which has at most 33 % of the samples of any training site"
    )
    assert odd_mix(("cat", "dog", "cow"), counts, np.repeat([0, 1, 2], [60, 20, 20])) == ""
    assert odd_mix(("cat", "dog", "cow"), counts, np.zeros(5, dtype=np.int64)) == ""


def test_few_samples_give_no_estimate() -> None:
    known = SiteKnowledge((HeldOutSite("x", 0.7, signals(0.3)),), reference())
    assert estimate_site(known, signals(0.3, n=19)) is None


def test_the_threshold_for_sure_predictions() -> None:
    confidence = np.linspace(0.4, 1.0, 1000)
    correct = np.random.default_rng(0).random(1000) < confidence
    rule = choose_sure(confidence, correct)
    above = confidence >= rule.threshold
    assert correct[above].mean() == pytest.approx(rule.accuracy)
    assert rule.accuracy >= 0.9
    assert correct[confidence >= rule.threshold - 0.02].mean() < 0.9
    never = choose_sure(confidence, np.zeros(1000))
    assert never.accuracy == 0.0


def test_weights_count_as_repetitions_do() -> None:
    rng = np.random.default_rng(0)
    confidence, times = rng.uniform(0.4, 1.0, 300), rng.integers(1, 4, 300)
    correct = rng.random(300) < confidence
    rule = choose_sure(confidence, correct, times / 7)
    repeated = choose_sure(np.repeat(confidence, times), np.repeat(correct, times))
    assert astuple(rule) == pytest.approx(astuple(repeated))

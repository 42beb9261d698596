"""Accuracy without labels, against plain loops."""

from __future__ import annotations

import numpy as np
import pytest

from longshift.errors import UsageError
from longshift.metrics import (
    confidence_threshold,
    difference_of_confidences,
    dispersity,
    feature_distance,
    negative_entropy,
    summarize_features,
    thresholded_confidence,
)


def test_atc_gives_the_accuracy_of_the_samples_it_was_fitted_on() -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(size=200)
    correct = rng.random(200) < 0.7
    threshold = confidence_threshold(scores, correct)
    above = sum(1 for score in scores if score > threshold)
    assert above == sum(correct)
    assert thresholded_confidence(scores, threshold) == pytest.approx(correct.mean())


@pytest.mark.parametrize(("correct", "share"), [([True] * 3, 1.0), ([False] * 3, 0.0)])
def test_atc_with_all_or_none_correct(correct: list[bool], share: float) -> None:
    scores = np.array([0.2, 0.9, 0.4])
    assert thresholded_confidence(scores, confidence_threshold(scores, np.array(correct))) == share


def test_atc_needs_samples() -> None:
    with pytest.raises(UsageError, match="at least one, got 0 and 0"):
        confidence_threshold(np.array([]), np.array([]))


def test_negative_entropy_against_a_loop() -> None:
    p = np.random.default_rng(0).dirichlet(np.ones(4), 20)
    expected = [sum(value * np.log(value) for value in row) for row in p]
    assert negative_entropy(p) == pytest.approx(expected)


def test_the_difference_of_confidences_is_a_share() -> None:
    assert difference_of_confidences(0.9, 0.8, 0.6) == pytest.approx(0.7)
    assert difference_of_confidences(0.1, 0.9, 0.2) == 0.0


def test_two_samples_of_one_distribution_are_close_however_small() -> None:
    rng = np.random.default_rng(0)
    near = [
        feature_distance(summarize_features(rng.normal(size=(8, 50))), summarize_features(rng.normal(size=(8, 50))))
        for _ in range(50)
    ]
    assert np.mean(near) < 0.25  # without the correction it would be 0.5
    moved = feature_distance(
        summarize_features(rng.normal(0, 2, (400, 50))), summarize_features(rng.normal(0, 2, (400, 50)) + 4)
    )
    assert moved == pytest.approx(2, rel=0.05)  # 4 * sqrt(50) over 2 * sqrt(50)


def test_dispersity_is_one_for_certain_predictions_of_any_frequency_and_falls_otherwise() -> None:
    even = np.eye(4)[np.arange(200) % 4]
    uneven = np.eye(4)[np.repeat([0, 1, 2, 3], [170, 10, 10, 10])]
    assert dispersity(even) == dispersity(uneven) == pytest.approx(1.0)
    unsure = 0.6 * uneven + 0.1
    largest = sum(np.sqrt(n) for n in unsure.sum(axis=0))  # the singular values of one-hot rows with these counts
    assert dispersity(unsure) == pytest.approx(np.linalg.svd(unsure, compute_uv=False).sum() / largest)
    assert dispersity(0.5 * even + 0.125) < 0.8
    assert dispersity(np.full((200, 4), 0.25)) == pytest.approx(0.25)

"""When a prediction counts as sure."""

from __future__ import annotations

from dataclasses import astuple

import numpy as np
import pytest

from longshift.inference import SureRule, choose_sure


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
    assert rule.useful
    assert not never.useful


def test_a_threshold_is_useful_if_its_predictions_are_right_at_least_as_often_as_wrong() -> None:
    assert SureRule(0.6, 0.5, 0.3).why_all_unsure() == ""
    assert "(at best 49%)" in SureRule(0.6, 0.494, 0.3).why_all_unsure()
    assert SureRule(0.6, 0.496, 0.3).useful  # "at best 50%" would be read as a mistake


def test_weights_count_as_repetitions_do() -> None:
    rng = np.random.default_rng(0)
    confidence, times = rng.uniform(0.4, 1.0, 300), rng.integers(1, 4, 300)
    correct = rng.random(300) < confidence
    rule = choose_sure(confidence, correct, times / 7)
    repeated = choose_sure(np.repeat(confidence, times), np.repeat(correct, times))
    assert astuple(rule) == pytest.approx(astuple(repeated))

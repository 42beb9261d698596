"""Reliability and accuracy against coverage, against plain loops."""

from __future__ import annotations

import numpy as np
import pytest

from longshift.fitting.calibration_section import accuracy_by_coverage, calibration_section, held_out_gap, reliability


def test_calibrated_predictions_lie_on_the_diagonal() -> None:
    rng = np.random.default_rng(0)
    confidence = rng.uniform(0.3, 1.0, 40_000)
    x, y = reliability(confidence, rng.random(40_000) < confidence)
    assert len(x) == 7
    assert x == pytest.approx(y, abs=0.02)


def test_bins_with_few_predictions_are_left_out() -> None:
    x, y = reliability(np.array([0.95] * 20 + [0.2] * 3), np.array([True] * 15 + [False] * 8))
    assert [*x, *y] == pytest.approx([0.95, 0.75])


def test_accuracy_of_the_most_confident_part() -> None:
    confidence = np.linspace(0, 1, 40)
    correct = np.arange(40) >= 10
    share, accuracy = accuracy_by_coverage(confidence, correct)
    for part, value in zip(share, accuracy, strict=True):
        n = round(part * 40)
        assert value == pytest.approx(sum(correct[40 - n :]) / n)
    assert (share[-1], accuracy[-1]) == (1.0, 0.75)


@pytest.mark.parametrize(
    ("confidence", "accuracy", "said"),
    [
        (0.62, 0.69, "too low by 7 points on average (mean probability 62%, 69% correct)."),
        (0.69, 0.62, "too high by 7 points on average (mean probability 69%, 62% correct)."),
        (0.71, 0.69, "about right on average (mean probability 71%, 69% correct)."),
        (0.67, 0.69, "about right on average (mean probability 67%, 69% correct)."),
        (0.72, 0.69, "too high by 3 points on average (mean probability 72%, 69% correct)."),
    ],
)
def test_whether_probabilities_were_too_high_or_too_low(confidence: float, accuracy: float, said: str) -> None:
    assert held_out_gap(confidence, accuracy, 3) == f"At the held-out sites, probabilities were {said}"
    assert held_out_gap(confidence, accuracy, 1) == f"At the held-out site, probabilities were {said}"


def test_no_section_without_predictions() -> None:
    assert calibration_section([]) == []

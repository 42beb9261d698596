"""The page of a fit: its words, and the numbers behind its figures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from longshift.fitting.page import (
    CalibrationGap,
    accuracy_by_coverage,
    calibration_sections,
    fit_page,
    label_sections,
    reliability,
)
from longshift.report.html_page import render_page
from tests.fitting.hand_made import full_summary
from tests.golden import check_golden
from tests.report.page_words import words_of


def test_the_words_of_the_page() -> None:
    page = fit_page(Path("report.html"), full_summary(), [])
    assert len(page.summary) <= 6
    check_golden("fit-page.txt", words_of(render_page(page)).rpartition("\nMade by")[0] + "\n")


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


def test_what_was_not_measured_has_no_section() -> None:
    assert calibration_sections([]) == []
    assert label_sections(None) == []
    assert CalibrationGap(0.716, 0.694).points == 3  # of the printed numbers

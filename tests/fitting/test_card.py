"""The model card."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from longshift.fitting.card import calibration_gap, card
from longshift.fitting.page import CalibrationGap
from longshift.inference import HeldOutSite, Signals, SiteAdaptation, SiteKnowledge
from tests.fitting.hand_made import full_summary, poor_summary
from tests.golden import check_golden

VERSIONS = {"longshift": "1.0", "torch": "2.0"}

ADAPTATION = SiteAdaptation(np.eye(3), np.eye(3), np.ones(3), helps=True, gain=0.042)


def test_the_words_of_the_card() -> None:
    full = card(full_summary(), Path("my fits"), VERSIONS, CalibrationGap(0.62, 0.69), ADAPTATION)
    check_golden("model-card.md", full + "\n")
    check_golden("model-card-poor.md", card(poor_summary(), Path("fits/skin"), VERSIONS) + "\n")


def test_every_sample_counts_once() -> None:
    held_out = tuple(
        HeldOutSite("a", accuracy, Signals(n, confidence, 0.5, 0.5, {"b": 1.0}))
        for n, confidence, accuracy in ((400, 0.8, 0.7), (100, 0.7, 0.8))
    )
    reference: object = None
    found = calibration_gap(SiteKnowledge(held_out, reference))  # type: ignore[arg-type]
    assert found is not None
    assert (found.probability, found.accuracy) == pytest.approx((0.78, 0.72))
    assert calibration_gap(None) is None

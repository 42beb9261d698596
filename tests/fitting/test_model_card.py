"""What the model card says about probabilities is what was measured at the held-out sites."""

from __future__ import annotations

from pathlib import Path

import pytest

from longshift.fitting import fit
from longshift.fitting.model_card import calibration
from longshift.inference import HeldOutSite, Signals
from tests.fitting.colored_sites import COUNTS, QUICK, sites


def held_out(n: int, confidence: float, accuracy: float) -> HeldOutSite:
    return HeldOutSite("a", accuracy, Signals(n, confidence, 0.5, 0.5, {"b": 1.0}))


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([(100, 0.6, 0.7), (100, 0.64, 0.68)], "sites, probabilities were too low by 7 points on average"),
        ([(100, 0.9, 0.7), (100, 0.9, 0.7)], "sites, probabilities were too high by 20 points on average"),
        ([(100, 0.8, 0.7), (100, 0.7, 0.8)], "sites, probabilities were about right on average"),
        ([(400, 0.8, 0.7), (100, 0.7, 0.8)], "sites, probabilities were too high by 6 points on average"),
        ([(100, 0.8, 0.7)], "site, probabilities were too high by 10 points on average"),
    ],
)
def test_the_measured_direction(rows: list[tuple[int, float, float]], said: str) -> None:
    text = calibration([held_out(*row) for row in rows])
    assert text.startswith(f"At the held-out {said} (mean probability ")
    assert text.endswith("At a new site, this may differ.")


def test_without_predictions_there_is_a_plain_caution() -> None:
    assert calibration([]) == "At a new site, they may be too high or too low."


@pytest.mark.slow
def test_the_card_and_the_report_say_the_same(tmp_path: Path) -> None:
    done = fit(sites(tmp_path / "d", COUNTS), out=tmp_path / "fit", **QUICK)
    held = done.model("cpu").knowledge
    assert held is not None
    sentence = calibration(held.held_out).removesuffix(" At a new site, this may differ.")
    assert f"Probabilities are calibrated for the sites above. {sentence}" in done.card.read_text(encoding="utf-8")
    assert sentence in done.report.read_text(encoding="utf-8")

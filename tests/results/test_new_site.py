"""Coverage and errors for new sites, by nested simulation: the published cases with the current formulas."""

from __future__ import annotations

import pytest
from results.new_site import cases

from longshift.analysis import LEVEL


@pytest.mark.slow
def test_intervals_hold_the_truth_at_their_level_and_the_estimate_beats_the_held_out_mean() -> None:
    found = cases()
    assert len(found) >= 60
    for covers in ("fit_covers", "covers"):
        assert abs(found[covers].mean() - LEVEL) <= 0.05
    errors = {name: (found[name] - found["truth"]).abs() for name in ("estimate", "mean", "confidence", "atc", "doc")}
    for name in ("mean", "confidence", "atc", "doc"):
        assert errors["estimate"].mean() < 0.7 * errors[name].mean()
    assert errors["estimate"][found["data"] == "vectors"].mean() <= 0.06

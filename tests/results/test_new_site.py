"""Coverage and errors for new sites, by nested simulation: the published cases with the current formulas."""

from __future__ import annotations

import pandas as pd
import pytest
from benchmarks.label_free_constants import choosing_rows, fit_constants
from results.new_site import FOLDER, USUAL, cases

from longshift.analysis import LEVEL
from longshift.inference.site_signals import AGREEMENT, CONSTANT, DISPERSITY


def test_the_constants_are_those_of_the_rows_that_are_kept_for_them() -> None:
    found = fit_constants(choosing_rows(pd.read_csv(FOLDER / "signals.csv")))
    assert [round(float(value), 2) for value in found] == [CONSTANT, AGREEMENT, DISPERSITY]


@pytest.mark.slow
def test_intervals_hold_the_truth_at_their_level_and_the_estimate_beats_the_held_out_mean() -> None:
    found = cases()
    found = found[found["mix"].isin(USUAL)]
    assert len(found) >= 60
    for covers in ("fit_covers", "covers"):
        assert abs(found[covers].mean() - LEVEL) <= 0.05
    errors = {name: (found[name] - found["truth"]).abs() for name in ("estimate", "mean", "confidence", "atc", "doc")}
    for name in ("mean", "confidence", "atc", "doc"):
        assert errors["estimate"].mean() < 0.7 * errors[name].mean()
    assert errors["estimate"].mean() <= 0.06
    assert errors["estimate"][found["data"] == "vectors"].mean() <= 0.03

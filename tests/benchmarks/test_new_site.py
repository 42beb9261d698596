"""Coverage and errors for new sites, by nested simulation: the published cases with the current formulas."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from benchmarks import site_data
from benchmarks.label_free_constants import (
    FIRST_SEED,
    PARTS,
    choosing_rows,
    fit_constants,
    fit_widths,
    quantile_regression,
    ranges,
    warned,
)
from benchmarks.nested_sites import subsets
from benchmarks.new_site import choose_cases
from longshift.inference import LEVEL
from longshift.inference.expected_accuracy import AGREEMENT, CONSTANT, DISPERSITY
from results.new_site import FOLDER, SHIPPED, USUAL, WIDTHS, cases


def test_the_constants_are_those_of_the_rows_that_are_kept_for_them() -> None:
    found = fit_constants(choosing_rows(pd.read_csv(FOLDER / "signals.csv")))
    assert [round(float(value), 2) for value in found] == [CONSTANT, AGREEMENT, DISPERSITY]


def test_the_widths_are_those_of_the_rows_that_are_kept_for_them() -> None:
    frame = pd.read_csv(FOLDER / "signals.csv")
    found = fit_widths(ranges(frame[frame["seed"] >= FIRST_SEED], SHIPPED))
    assert [round(float(value), 2) for value in found] == WIDTHS.tolist()


def test_far_sites_change_neither_the_others_nor_what_is_trained_on() -> None:
    near, all_sites = site_data.vectors(200), site_data.vectors(200, far=True)
    assert near.names == all_sites.names
    for site in near.names:
        np.testing.assert_array_equal(near.x[site], all_sites.x[site])
    assert set(all_sites.x) == {*near.names, *all_sites.far}
    made = choose_cases(near.names, 200, all_sites.far)
    assert {case.new for case in made} == set(all_sites.x)
    assert subsets(made) == subsets(choose_cases(near.names, 200))


def test_quantile_regression_holds_its_level_in_each_group() -> None:
    rng = np.random.default_rng(0)
    group = np.repeat([0.0, 1.0], 500)
    y = rng.exponential(1 + 2 * group)
    found = quantile_regression(np.column_stack([np.ones(1000), group]), y, np.ones(1000), 0.8)
    # With a constant and an indicator, the solution is the quantile of each group.
    assert found[0] == pytest.approx(np.quantile(y[:500], 0.8), abs=0.02)
    assert found.sum() == pytest.approx(np.quantile(y[500:], 0.8), abs=0.05)
    flat = quantile_regression(np.column_stack([np.ones(1000), group]), y[::-1].copy(), np.ones(1000), 0.8)
    assert flat[1] == 0  # never narrower
    assert flat[0] == pytest.approx(np.quantile(y, 0.8), abs=0.02)


@pytest.mark.slow
def test_intervals_hold_the_truth_where_a_warning_applies_and_stay_as_they_are_elsewhere() -> None:
    found = cases()
    calm = found[~warned(found)]
    assert calm["predict_width"].mean() <= 1.02 * calm["held_out_width"].mean()
    assert calm["predict_covers"].mean() >= LEVEL - 0.05
    for part in PARTS[1:]:
        warning = found[found[part] > 0]
        assert warning["held_out_covers"].mean() < LEVEL - 0.1
        for covers in ("predict_covers", "others_covers"):
            assert warning[covers].mean() >= LEVEL - 0.05


@pytest.mark.slow
def test_intervals_hold_the_truth_at_their_level_and_the_estimate_beats_the_held_out_mean() -> None:
    found = cases()
    found = found[found["mix"].isin(USUAL)]
    assert len(found) >= 60
    assert abs(found["fit_covers"].mean() - LEVEL) <= 0.05
    assert LEVEL - 0.05 <= found["predict_covers"].mean() <= LEVEL + 0.1
    errors = {name: (found[name] - found["truth"]).abs() for name in ("estimate", "mean", "confidence", "atc", "doc")}
    for name in ("mean", "confidence", "atc", "doc"):
        assert errors["estimate"].mean() < 0.7 * errors[name].mean()
    assert errors["estimate"].mean() <= 0.06
    assert errors["estimate"][found["data"] == "vectors"].mean() <= 0.03

"""The tail against the closed form of the log-logistic density, and cutting counts to it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from longshift.errors import UsageError
from longshift.settings.tail_shapes import cut_to_ratio, cut_to_tail, heavy_tail


@pytest.mark.parametrize(("c", "classes"), [(3.0, 7), (2.0, 345), (1.5, 5), (6.0, 65)])
def test_the_density_in_closed_form(c: float, classes: int) -> None:
    start = math.sin(math.pi / c) / (math.pi / c)  # one over the mean
    stop = 99 ** (1 / c)  # the 99th percentile
    points = [start + i * (stop - start) / (classes - 1) for i in range(classes)]
    density = [c * x ** (c - 1) / (1 + x**c) ** 2 for x in points]
    np.testing.assert_allclose(heavy_tail(classes, c), np.array(density) / sum(density), rtol=1e-12)


@given(st.integers(2, 1000), st.floats(1.01, 200), st.floats(1, 1e5))
def test_a_stated_ratio_is_met_and_the_curve_never_rises(classes: int, c: float, ratio: float) -> None:
    weights = heavy_tail(classes, c, ratio)
    assert weights[0] / weights[-1] == pytest.approx(ratio)
    assert weights.sum() == pytest.approx(1)
    assert (np.diff(weights) <= 1e-15).all()
    assert (np.diff(heavy_tail(classes, c)) <= 1e-15).all()


def test_ratios_of_the_plain_curve_as_documented() -> None:
    for c, ratio in ((3.0, 130), (1.0001, 10_000), (1e4, 25.25)):
        weights = heavy_tail(10, c)
        assert weights[0] / weights[-1] == pytest.approx(ratio, rel=0.01)


def test_values_out_of_range_are_refused() -> None:
    with pytest.raises(UsageError, match="`c`"):
        heavy_tail(5, 1.0)
    with pytest.raises(UsageError, match="`ratio`"):
        heavy_tail(5, ratio=0.5)
    with pytest.raises(UsageError, match="classes"):
        heavy_tail(1)


def test_cut_to_tail_by_hand() -> None:
    weights = np.array([0.8, 0.15, 0.05])
    assert cut_to_tail(np.array([16.0, 2.0, 9.0]), weights).tolist() == [16, 2, 1]
    assert cut_to_tail(np.array([16.0, 2.0, 9.0]), weights, total=10).tolist() == [8, 1, 1]
    assert cut_to_tail(np.array([np.nan, 6.0, 9.0]), weights).tolist() == [0, 6, 2]
    assert cut_to_tail(np.array([np.nan] * 3), weights).tolist() == [0, 0, 0]
    assert cut_to_tail(np.array([0.0, 5.0, 5.0]), weights).tolist() == [1, 1, 1]


def test_cut_to_ratio_by_hand() -> None:
    # 150 can give 100 times 1; the middle class follows the curve or gives all it has.
    plenty = cut_to_ratio(np.array([150.0, 150.0, 150.0]), 3, 100)
    assert (plenty[0], plenty[-1]) == (100, 1)
    assert 1 < plenty[1] < 100
    assert cut_to_ratio(np.array([150.0, 1.0, 150.0]), 3, 100).tolist() == [100, 1, 1]
    assert cut_to_ratio(np.array([30.0, 30.0, 30.0]), 3, 100)[[0, 2]].tolist() == [30, 1]
    assert cut_to_ratio(np.array([30.0, 20.0, 25.0]), 3, 1).tolist() == [20, 20, 20]
    assert cut_to_ratio(np.array([90.0, np.nan, 90.0]), 3, 10).tolist() == [90, 0, 9]
    assert cut_to_ratio(np.array([np.nan, 7.0]), 3, 10).tolist() == [0, 7]


@given(st.lists(st.integers(1, 500), min_size=2, max_size=40), st.floats(1, 400))
def test_cut_to_ratio_reaches_what_the_data_permit(room: list[int], ratio: float) -> None:
    counts = cut_to_ratio(np.array(room, dtype=float), 3, ratio)
    assert (counts <= room).all()
    assert (counts >= 1).all()
    if room[0] >= ratio:  # the head has enough for the ratio over a single sample
        smallest = counts.min()
        assert counts.max() == counts[0]
        assert abs(counts.max() - smallest * ratio) <= 0.5 + 1e-9

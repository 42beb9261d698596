"""The width of an interval where the new site is unlike the held-out ones."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest

from longshift.analysis import LogitRange
from longshift.inference import Doubt, class_excess, relative_excess
from longshift.inference.site_doubt import (
    DISTANCE_WIDTH,
    DOMINANCE_WIDTH,
    FEW,
    FEW_WIDTH,
    ODD,
    USUAL_WIDTH,
)

FOUND = LogitRange(0.4, 0.8)


def test_the_width_is_a_sum_of_what_each_doubt_adds() -> None:
    assert Doubt(0.0, ODD, FEW).widen(FOUND).half == pytest.approx(USUAL_WIDTH * 0.8)
    whole = Doubt(0.5, ODD + 0.2, FEW // 4).widen(FOUND)
    assert whole.center == FOUND.center
    # A quarter of the samples: errors by chance are twice as large.
    assert whole.half == pytest.approx((USUAL_WIDTH + DISTANCE_WIDTH / 2 + DOMINANCE_WIDTH / 5 + FEW_WIDTH) * 0.8)


def test_a_warning_never_makes_the_interval_narrower_and_more_of_it_never_either() -> None:
    constants = (DISTANCE_WIDTH, DOMINANCE_WIDTH, FEW_WIDTH)
    assert min(constants) >= 0
    steps = (
        [Doubt(relative_excess(distance, 0.4), 0.2, 200) for distance in np.linspace(0, 5, 40)],
        [Doubt(0.0, dominance, 200) for dominance in np.linspace(0, 1, 40)],
        [Doubt(0.0, 0.2, n) for n in range(400, 19, -5)],
    )
    for doubts in steps:
        halves = [doubt.widen(FOUND).half for doubt in doubts]
        assert all(before <= after for before, after in pairwise(halves))
        assert halves[0] == pytest.approx(USUAL_WIDTH * FOUND.half)
        assert halves[-1] > halves[0]
    for farther, dominance, n in product((0.0, 0.5), (0.1, 0.6), (30, 300)):
        doubt = Doubt(farther, dominance, n)
        assert bool(doubt.reasons()) == (doubt.widen(FOUND).half > doubt.usual().widen(FOUND).half)


def test_the_widest_interval_stays_between_0_and_100_percent() -> None:
    for center in (-9.0, 0.0, 9.0):
        found = Doubt(1.0, 1.0, 20).widen(LogitRange(center, 5.0)).shares()
        assert 0 <= found.low < found.mean < found.high <= 1


def test_the_excess_of_a_distance_grows_with_it_and_does_not_depend_on_its_unit() -> None:
    distances = np.linspace(0, 3, 31)
    found = [relative_excess(distance, 1.0) for distance in distances]
    assert found == sorted(found)
    assert found[10] == 0
    assert found[20] == pytest.approx(1 / 3)
    assert relative_excess(200.0, 100.0) == pytest.approx(found[20])
    assert relative_excess(0.0, 0.0) == 0


def test_the_class_with_the_largest_excess_is_found() -> None:
    found = class_excess([[10, 10, 10], [4, 10, 16]], np.repeat([0, 1, 2], [30, 50, 20]))
    assert (found.label, found.share) == (1, 0.5)
    assert found.known == pytest.approx(1 / 3)
    assert found.excess == pytest.approx(1 / 6)
    assert class_excess([[0, 10]], np.ones(7, dtype=np.int64)).excess == 0
    assert class_excess([[5, 5]], np.array([], dtype=np.int64)).excess == 0

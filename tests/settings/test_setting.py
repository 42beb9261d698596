"""Imbalance ratios by hand (tests/paper has those of the paper); many-, medium- and few-shot classes."""

from __future__ import annotations

import itertools
import math

import numpy as np
from hypothesis import given, strategies as st

from longshift.settings import ratios, shot_groups
from longshift.settings.setting import terciles


def test_by_hand() -> None:
    found = ratios(np.array([[8, 2], [1, 4]]), ("a", "b"))
    assert (found.cr, found.dr, found.ecr) == (9 / 6, 10 / 5, {"a": 4.0, "b": 4.0})


def test_a_class_without_samples_makes_the_ratio_infinite() -> None:
    found = ratios(np.array([[8, 0], [1, 4]]), ("a", "b"))
    assert found.ecr == {"a": math.inf, "b": 4.0}
    assert found.cr == 9 / 4


def test_the_published_rule_by_hand() -> None:
    counts = np.array([[300, 10, 60, 30], [0, 20, 50, 31]])
    # Means 150, 15, 55, 30.5: more than 100 is many, fewer than 30 is few, the thresholds themselves are medium.
    assert shot_groups(counts, 100, 30) == ("many", "few", "medium", "medium")
    assert shot_groups(counts, 150, 15) == ("medium", "medium", "medium", "medium")


def test_terciles_by_hand() -> None:
    assert terciles(np.array([[9, 8, 7, 6, 5, 4]])) == (7.5, 5.5)
    assert terciles(np.array([[9, 9, 9, 9, 5, 1]])) == (7.0, 3.0)
    assert terciles(np.array([[9, 9, 1]])) == (5.0, 5.0)
    assert terciles(np.array([[4, 4, 4]])) == (4.0, 4.0)


@given(st.lists(st.integers(0, 12), min_size=2, max_size=60))
def test_three_different_counts_give_three_groups(counts: list[int]) -> None:
    table = np.array([counts])
    groups = shot_groups(table, *terciles(table))
    different = len(set(counts))
    expected = {"many", "medium", "few"} if different >= 3 else {"many", "few"} if different == 2 else {"medium"}
    assert set(groups) == expected
    size = {group: [n for n, g in zip(counts, groups, strict=True) if g == group] for group in expected}
    order = [size[group] for group in ("many", "medium", "few") if group in size]
    assert all(min(larger) > max(smaller) for larger, smaller in itertools.pairwise(order))

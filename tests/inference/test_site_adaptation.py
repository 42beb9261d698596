"""Adapting a model to a site without labels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from longshift.array_types import FloatArray, IntArray
from longshift.errors import UsageError
from longshift.inference.site_adaptation import (
    FEWEST,
    FLOOR,
    OUTSIDE,
    PRIOR,
    STRENGTH,
    HeldOutLogits,
    SiteAdaptation,
    choose_adaptation,
    class_means,
    class_mix,
    class_precision,
    largest_shares,
    site_offset,
)

CENTERS = 6 * np.eye(3) - 2  # mean logits of three classes that are easy to tell apart
LEARNED = SiteAdaptation(CENTERS, np.eye(3), np.full(3, 0.6), helps=True)


def sample_site(
    offset: list[float], mix: list[float], n: int, seed: int = 0, spread: float = 1.0
) -> tuple[FloatArray, IntArray]:
    """Logits that this offset moved, and their labels."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(3), np.round(np.array(mix) * n).astype(int))
    return CENTERS[labels] + rng.normal(0, spread, (len(labels), 3)) + np.array(offset), labels


def accuracy(logits: FloatArray, labels: IntArray) -> float:
    return float((logits.argmax(axis=1) == labels).mean())


@pytest.mark.parametrize("mix", [[0.34, 0.33, 0.33], [0.55, 0.35, 0.1]])
def test_the_offset_of_a_site_is_found_with_any_mix(mix: list[float]) -> None:
    moved = [-2.0, 4.0, -2.0]
    logits, labels = sample_site(moved, mix, 600)
    found = site_offset(LEARNED, logits)
    floored = (np.array(mix) + FLOOR) / (1 + 3 * FLOOR)
    assert found.mix == pytest.approx(floored, abs=0.02)
    assert accuracy(logits + found.values, labels) > accuracy(logits, labels) + 0.1


def test_the_estimate_is_a_fixed_point_of_em() -> None:
    logits, _ = sample_site([0.5, 0.0, -0.5], [0.5, 0.3, 0.2], 200)
    found = site_offset(LEARNED, logits)
    gaps = (logits + found.values)[:, None] - CENTERS
    likely = found.mix * np.exp(-0.5 * np.square(gaps).sum(axis=2))
    mix = (likely / likely.sum(axis=1, keepdims=True)).mean(axis=0) + FLOOR
    assert found.mix == pytest.approx(mix / mix.sum(), abs=1e-3)
    weight = STRENGTH * 200 / (200 + PRIOR)
    assert found.values == pytest.approx(weight * (found.mix @ CENTERS - logits.mean(axis=0)), abs=1e-3)


def test_a_known_mix_gives_the_closed_form() -> None:
    logits, _ = sample_site([1.0, 0.0, 0.0], [0.9, 0.1, 0.0], 100)
    mix = np.array([0.9, 0.1, 0.0])
    found = site_offset(replace(LEARNED, helps=False), logits, mix)
    assert found.values == pytest.approx(100 / (100 + PRIOR) * (mix @ CENTERS - logits.mean(axis=0)))
    assert found.strength == 1


@pytest.mark.parametrize("mix", [None, np.full(3, 1 / 3)])
def test_few_samples_change_nothing(mix: FloatArray | None) -> None:
    logits, _ = sample_site([3.0, 0.0, 0.0], [0.4, 0.3, 0.3], FEWEST)
    assert site_offset(LEARNED, logits, mix).strength == 1
    few = site_offset(LEARNED, logits[1:], mix)
    assert few.strength == 0
    assert not few.values.any()


def test_the_strength_falls_as_the_mix_leaves_the_range_of_the_training_sites() -> None:
    known = replace(LEARNED, shares=np.array([0.5, 0.4, 0.4]))
    strengths = []
    for share in (0.5, 0.7, 0.95):
        found = site_offset(known, sample_site([0.0, 0.0, 0.0], [share, (1 - share) / 2, (1 - share) / 2], 400)[0])
        outside = np.maximum(found.mix - known.shares, 0).sum()
        assert found.strength == pytest.approx(max(1 - OUTSIDE * outside, 0))
        strengths.append(found.strength)
    assert strengths[0] == 1 > strengths[1] > strengths[2] == 0


def test_a_class_without_samples_has_no_part() -> None:
    unknown = replace(LEARNED, class_logits=np.where(np.eye(3)[:, [2]] == 1, np.nan, CENTERS))
    found = site_offset(unknown, sample_site([1.0, -1.0, 0.0], [0.5, 0.5, 0.0], 200)[0])
    assert np.isfinite(found.values).all()
    assert found.values[:2] - found.values[:2].mean() == pytest.approx([-STRENGTH, STRENGTH], abs=0.1)


def test_class_means_do_not_depend_on_which_classes_a_site_has() -> None:
    rng = np.random.default_rng(0)
    classes, places = rng.normal(0, 1, (3, 4)), rng.normal(0, 5, (2, 4))
    labels, sites = np.array([0, 0, 0, 1, 1, 2, 2, 0]), np.array([0, 0, 0, 0, 1, 1, 1, 1])
    found = class_means(classes[labels] + places[sites], labels, sites, 4)
    assert found[:3] == pytest.approx(classes + places.mean(axis=0))
    assert np.isnan(found[3]).all()


def test_class_precision_is_the_inverse_of_what_is_left_of_classes_and_sites() -> None:
    rng = np.random.default_rng(0)
    spread = rng.normal(0, 1, (3, 3))
    labels, sites = rng.choice(3, 30_000, p=[0.8, 0.1, 0.1]), rng.integers(0, 2, 30_000)
    logits = 9 * np.eye(3)[labels] + rng.normal(0, 5, (2, 3))[sites] + rng.normal(0, 1, (30_000, 3)) @ spread
    middle = np.eye(3) - 1 / 3
    known = np.linalg.pinv(middle @ spread.T @ spread @ middle)
    assert class_precision(logits, labels, sites) == pytest.approx(known, rel=0.1, abs=0.1)
    few = class_precision(logits[:4], labels[:4], sites[:4])
    assert np.isfinite(few).all()
    assert few @ np.ones(3) == pytest.approx(0, abs=1e-6)


def test_largest_shares() -> None:
    assert largest_shares([[1, 3], [2, 2], [0, 0]]) == pytest.approx([0.5, 0.75])


def held_out(offset: list[float], seed: int, spread: float) -> HeldOutLogits:
    logits, labels = sample_site(offset, [0.4, 0.35, 0.25], 400, seed, spread)
    return HeldOutLogits(replace(LEARNED, helps=False), logits, labels)


def test_a_fit_adapts_where_sites_move_and_classes_are_apart() -> None:
    sites = [held_out([4.0, -2.0, -2.0], 0, 1.0), held_out([-2.0, 4.0, -2.0], 1, 1.0)]
    found = choose_adaptation(sites, LEARNED)
    assert found.helps
    assert found.gain > 0.1


def test_a_fit_does_not_adapt_where_that_does_not_help() -> None:
    learned = replace(LEARNED, helps=False)
    still = [held_out([0.0, 0.0, 0.0], seed, 5.0) for seed in (0, 1)]
    assert not choose_adaptation(still, learned).helps
    assert not choose_adaptation([held_out([4.0, -2.0, -2.0], 0, 1.0)], learned).helps  # one site shows nothing


def test_shares_of_some_classes() -> None:
    assert class_mix("abc", {"a": 0.2, "b": 0.3, "c": 0.5}) == pytest.approx([0.2, 0.3, 0.5])
    for wrong, name in (({"d": 0.1}, "d"), ({"a": 2.0}, "a"), ({"a": 0.9, "b": 0.9}, "1.8"), ({"a": -0.1}, "a")):
        with pytest.raises(UsageError, match=name):
            class_mix("abc", wrong)

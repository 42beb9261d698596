"""Refitting the last layer: against scikit-learn, gains where labels can show one, and the learning curve."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import binomtest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from longshift.fitting.head_refit import (
    STRENGTH,
    HeadComparison,
    Samples,
    compare_heads,
    folds,
    head_logits,
    refit_head,
    site_shift,
)
from longshift.fitting.page import label_sections
from longshift.fitting.suggest import LabelCurve, LabelGain, choose_samples, simulate_labels
from longshift.methods import LinearHead


def blobs(n: int, shift: float, seed: int) -> Samples:
    """Three classes; a shift turns one class into the place of the next."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, n)
    angle = 2 * np.pi * labels / 3 + shift
    points = 3 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return Samples(np.hstack([points, np.zeros((n, 3))]) + rng.normal(0, 0.7, (n, 5)), labels)


KNOWN = blobs(60, 0.0, 5)


@pytest.fixture
def old() -> LinearHead:
    return refit_head(blobs(300, 0.0, 0), KNOWN, 3)


def accuracy(head: LinearHead, samples: Samples) -> float:
    return float((head_logits(head, samples.features).argmax(1) == samples.labels).mean())


def test_the_shift_of_a_site_leaves_out_its_class_mix() -> None:
    known = Samples(np.array([[0.0, 0], [2, 0], [10, 0]]), np.array([0, 0, 1]))
    new = Samples(np.array([[11.0, 3]] * 30 + [[2.0, 3]] * 10 + [[99.0, 99]]), np.array([1] * 30 + [0] * 10 + [2]))
    assert site_shift(new, known) == pytest.approx(np.array([1, 3]) * 40 / 50)
    assert site_shift(new.part(np.array([40])), known) == pytest.approx([0, 0])  # of a class that was not known


def test_the_head_is_that_of_scikit_learn() -> None:
    new = blobs(40, 0.9, 3)
    shift = site_shift(new, KNOWN)
    counts = np.bincount(KNOWN.labels)
    weights = np.concatenate([np.full(40, 0.5 / 40), 0.5 / 3 / counts[KNOWN.labels]])
    rows = np.concatenate([new.features - shift, KNOWN.features])
    scale = StandardScaler().fit(rows)
    known = LogisticRegression(C=1 / STRENGTH, tol=1e-8, max_iter=1000)
    known.fit(scale.transform(rows), np.concatenate([new.labels, KNOWN.labels]), weights)
    found = softmax(head_logits(refit_head(new, KNOWN, 3), new.features), axis=1)
    assert found == pytest.approx(known.predict_proba(scale.transform(rows[:40])), abs=1e-3)


def test_labels_of_a_turned_site_help(old: LinearHead) -> None:
    new, test = blobs(40, 0.9, 3), blobs(500, 0.9, 4)
    head = refit_head(new, KNOWN, 3)
    assert accuracy(head, test) > accuracy(old, test) + 0.1
    found = compare_heads(head_logits(old, new.features), new, KNOWN)
    assert found.clear
    assert found.after - found.before == found.gained - found.lost
    assert found.p_value == binomtest(found.gained, found.gained + found.lost).pvalue


def test_no_gain_is_claimed_where_there_is_none(old: LinearHead) -> None:
    new = blobs(30, 0.0, 6)
    found = compare_heads(head_logits(old, new.features), new, KNOWN)
    assert not found.clear
    few = HeadComparison(5, 8, 3, 0, 12, np.zeros((12, 3)))  # three of three changes: p = 0.25
    assert not few.clear
    worse = HeadComparison(20, 8, 0, 12, 40, np.zeros((40, 3)))
    assert worse.worse


def test_folds_hold_each_sample_once_and_classes_evenly() -> None:
    labels = np.repeat([0, 1], [20, 5])
    parts = folds(labels)
    assert sorted(np.concatenate(parts).tolist()) == list(range(25))
    assert [int((labels[part] == 1).sum()) for part in parts] == [1] * 5
    assert len(folds(np.array([0, 1, 0]))) == 3


def test_suggested_samples_are_uncertain_different_and_of_all_classes() -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(0, 1, (400, 4)) + 8 * np.eye(4)[np.arange(400) % 4]
    p = np.full((400, 3), 0.01)
    p[np.arange(400), 0] = 0.98
    p[:40] = [0.4, 0.35, 0.25]
    p[40:44] = [0.3, 0.1, 0.6]  # a rare predicted class
    chosen = choose_samples(p, features, 12)
    assert len(set(chosen.tolist())) == 12
    assert np.mean(chosen < 44) > 0.4  # 11% of the samples are uncertain
    assert set((chosen % 4).tolist()) == {0, 1, 2, 3}
    assert (chosen[chosen < 44] >= 40).any()
    assert choose_samples(p[:5], features[:5], 9).tolist() == [0, 1, 2, 3, 4]


def run_arrays(old: LinearHead) -> dict[str, Any]:
    target, known = blobs(300, 0.9, 7), blobs(45, 0.0, 8)
    return {
        "target_logits": head_logits(old, target.features), "target_features": target.features,
        "target_labels": target.labels, "validation_logits": head_logits(old, known.features),
        "validation_features": known.features, "validation_labels": known.labels,
        "validation_domains": np.zeros(45, dtype=np.int64),
    }  # fmt: skip


def test_the_learning_curve_rises_and_leaves_out_what_a_site_is_too_small_for(old: LinearHead) -> None:
    rows = simulate_labels("a", run_arrays(old), (10, 50, 100))
    assert [row.labels for row in rows] == [0, 10, 50]
    assert rows[0].random == rows[0].suggested
    assert rows[2].random > rows[0].random + 0.1
    assert rows[2].suggested > rows[0].suggested + 0.1


def test_means_are_over_sites_that_have_all_numbers() -> None:
    curve = LabelCurve(
        (LabelGain("a", 0, 0.5, 0.5), LabelGain("a", 10, 0.6, 0.7), LabelGain("a", 20, 0.9, 0.9),
         LabelGain("b", 0, 0.7, 0.7), LabelGain("b", 10, 0.8, 0.7))
    )  # fmt: skip
    means = curve.means()
    assert [row.labels for row in means] == [0, 10]
    assert [value for row in means for value in (row.random, row.suggested)] == pytest.approx([0.6, 0.6, 0.7, 0.7])
    assert len(label_sections(curve)) == 1
    assert label_sections(LabelCurve(curve.rows[:1])) == label_sections(None) == []

"""What predictions at a site say without labels."""

from __future__ import annotations

import numpy as np
import pytest

from longshift.inference import novelty, read_signals
from tests.inference.site_outputs import outputs, reference, signals


def test_signals_of_the_samples_of_the_reference_give_their_accuracy() -> None:
    logits, labels, features = outputs(120, 3.0, 0.0, 0)
    found = read_signals(reference(), logits, features, 1.0)
    right = float((logits.argmax(1) == labels).mean())
    assert found.thresholded == pytest.approx(right)
    assert found.difference == pytest.approx(right)
    assert set(found.distances) == {"a", "b"}
    assert found.nearest < 0.2


def test_a_less_sure_and_farther_site_has_a_lower_estimate_and_a_larger_distance() -> None:
    known = reference()
    easy, hard = (read_signals(known, *outputs(300, sharp, shift, 5)[::2], 1.0) for sharp, shift in ((3, 0), (0.5, 3)))
    for name in ("confidence", "thresholded", "difference", "agreement", "dispersity"):
        assert getattr(hard, name) < getattr(easy, name) - 0.1
    assert hard.nearest > easy.nearest + 1
    assert hard.unlike > easy.unlike


def test_novelty_of_the_known_samples_is_below_one() -> None:
    _, _, features = outputs(120, 3.0, 0.0, 0)
    assert (novelty(reference(), features) <= 1.0).mean() >= 0.98


def test_a_move_of_all_features_leaves_the_agreement() -> None:
    logits, _, features = outputs(300, 2.0, 0.0, 5)
    first, moved = (read_signals(reference(), logits, rows, 1.0) for rows in (features, features + 40.0))
    assert moved.agreement == pytest.approx(first.agreement)
    assert moved.nearest > first.nearest + 1


def test_the_score_hardly_depends_on_which_class_is_frequent() -> None:
    logits, labels, features = outputs(600, 3.0, 0.0, 5)
    most = np.concatenate([np.flatnonzero(labels == 0), np.flatnonzero(labels != 0)[:20]])
    even, uneven = (read_signals(reference(), logits[rows], features[rows], 1.0) for rows in (slice(None), most))
    assert (labels[most] == 0).mean() > 0.85
    assert uneven.agreement == pytest.approx(even.agreement, abs=0.1)
    assert uneven.dispersity == pytest.approx(even.dispersity, abs=0.12)


def test_the_score_grows_with_agreement_and_dispersity() -> None:
    scores = [signals(0.3, share).score() for share in (0.1, 0.5, 0.9)]
    assert scores == sorted(scores)
    assert np.diff(scores).min() > 0.5

"""The accuracy at a new site without labels: signals, intervals, their formulas, and what a model keeps."""

from __future__ import annotations

import json
from dataclasses import astuple, replace
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import special, stats
from scipy.spatial.distance import cdist
from sklearn.linear_model import LinearRegression

from longshift.array_types import FloatArray, IntArray
from longshift.errors import LongshiftError
from longshift.inference import (
    LEVEL,
    Doubt,
    Evidence,
    HeldOutSite,
    SiteKnowledge,
    SureRule,
    choose_sure,
    class_excess,
    corrected_estimate,
    estimate_site,
    logit_share,
    novelty,
    one_more_site,
    read_knowledge,
    read_signals,
    relative_excess,
    write_knowledge,
)
from longshift.inference.expected_accuracy import (
    COEFFICIENTS,
    DISTANCE_WIDTH,
    DOMINANCE_WIDTH,
    FEW,
    FEW_WIDTH,
    KEPT,
    ODD,
    RESIDUAL,
    RESIDUAL_WEIGHT,
    USUAL_WIDTH,
    FeatureSummary,
    LogitRange,
    dispersity,
    make_reference,
    prototype_agreement,
    site_prototypes,
)
from longshift.io import read_json, write_json
from tests.inference.site_outputs import known, outputs, reference, signals


def test_a_new_site_falls_into_the_interval_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    hits = []
    for _ in range(2000):
        # Sites of a population as different as the prior expects: the interval is exact there.
        spread = 1.0 / np.sqrt(rng.chisquare(3) / 3)
        shares = special.expit(rng.normal(1.0, spread, 6))
        found = one_more_site(shares[:5].tolist(), [10**6] * 5)
        hits.append(found.low <= shares[5] <= found.high)
    assert np.mean(hits) == pytest.approx(LEVEL, abs=0.03)


def test_more_sites_that_agree_give_a_narrower_interval() -> None:
    widths = []
    for k in (1, 2, 3, 5, 10, 40):
        found = one_more_site([0.85] * k, [300] * k)
        widths.append(found.high - found.low)
    assert widths == sorted(widths, reverse=True)
    assert widths[1] > 0.5


def test_accuracies_of_one_and_zero_are_finite() -> None:
    found = one_more_site([1.0, 1.0, 0.0], [9, 9, 9])
    assert 0 <= found.low < found.high <= 1


def test_without_held_out_errors_the_estimate_stays() -> None:
    held = [Evidence(0.5, 0.5), Evidence(1.5, 1.5), Evidence(1.0, 1.0)]
    found = corrected_estimate(0.8, held).shares()
    assert found.mean == pytest.approx(special.expit(0.8))
    assert found.low < found.mean < found.high


def test_the_correction_is_bayesian_linear_regression() -> None:
    """Against the textbook posterior with the covariance of all samples written out."""
    rng = np.random.default_rng(1)
    numbers = zip(rng.normal(1, 1, 6), rng.normal(0, 1, 6), (1, 1, 0.3, 1, 0.3, 1), strict=True)
    held = [Evidence(float(a), float(b), weight) for a, b, weight in numbers]
    found = corrected_estimate(0.3, held).shares()
    estimates, weights = (np.array([getattr(site, name) for site in held]) for name in ("estimate", "weight"))
    middle = np.average(estimates, weights=weights)
    x = np.array([[1, value - middle] for value in (*estimates, 0.3)])
    errors = np.array([site.truth for site in held]) - estimates
    covariance = np.diag([*(1 / weights), 1.0]) + x @ np.diag(1 / np.array(COEFFICIENTS)) @ x.T
    inverse = np.linalg.inv(covariance[:6, :6])
    center = 0.3 + covariance[6, :6] @ inverse @ errors
    freedom = RESIDUAL_WEIGHT + weights.sum()
    variance = (RESIDUAL_WEIGHT * RESIDUAL**2 + errors @ inverse @ errors) / freedom
    variance *= covariance[6, 6] - covariance[6, :6] @ inverse @ covariance[:6, 6]
    half = stats.t.ppf((1 + LEVEL) / 2, freedom) * np.sqrt(variance)
    expected = special.expit([center - half, center, center + half])
    assert (found.low, found.mean, found.high) == pytest.approx(tuple(expected))


def test_an_estimate_that_was_too_high_everywhere_is_lowered() -> None:
    found = corrected_estimate(2.0, [Evidence(2.0, 0.0)] * 5)
    assert found.shares().mean < 0.7
    assert corrected_estimate(2.0, [Evidence(2.0, 0.0)]).center > found.center  # one site convinces less
    assert corrected_estimate(2.0, [Evidence(2.0, 0.0, weight=0.3)] * 5).center > found.center


def test_logits_of_shares() -> None:
    assert logit_share(0.8, 10**9) == pytest.approx(np.log(4))
    assert logit_share(0.0, 9) == pytest.approx(-logit_share(1.0, 9))


def test_two_samples_of_one_distribution_are_close_however_small() -> None:
    rng = np.random.default_rng(0)
    near = [
        FeatureSummary.of(rng.normal(size=(8, 50))).distance(FeatureSummary.of(rng.normal(size=(8, 50))))
        for _ in range(50)
    ]
    assert np.mean(near) < 0.25  # without the correction it would be 0.5
    moved = FeatureSummary.of(rng.normal(0, 2, (400, 50))).distance(FeatureSummary.of(rng.normal(0, 2, (400, 50)) + 4))
    assert moved == pytest.approx(2, rel=0.05)  # 4 * sqrt(50) over 2 * sqrt(50)


def test_dispersity_is_one_for_certain_predictions_of_any_frequency_and_falls_otherwise() -> None:
    even = np.eye(4)[np.arange(200) % 4]
    uneven = np.eye(4)[np.repeat([0, 1, 2, 3], [170, 10, 10, 10])]
    assert dispersity(even) == dispersity(uneven) == pytest.approx(1.0)
    unsure = 0.6 * uneven + 0.1
    largest = sum(np.sqrt(n) for n in unsure.sum(axis=0))  # the singular values of one-hot rows with these counts
    assert dispersity(unsure) == pytest.approx(np.linalg.svd(unsure, compute_uv=False).sum() / largest)
    assert dispersity(0.5 * even + 0.125) < 0.8
    assert dispersity(np.full((200, 4), 0.25)) == pytest.approx(0.25)


def test_prototypes_against_a_regression_on_classes_and_sites() -> None:
    rng = np.random.default_rng(0)
    features, labels, sites = rng.normal(size=(60, 5)), rng.integers(0, 3, 60), rng.integers(0, 2, 60)
    found = site_prototypes(features, labels, sites, 4)
    design = np.column_stack([labels == 1, labels == 2, sites == 1])  # the first class and site are in the intercept
    parts = np.vstack([np.zeros(5), LinearRegression().fit(design, features).coef_.T[:2]])
    np.testing.assert_allclose(found[:3], parts - parts.mean(axis=0))
    assert np.isnan(found[3]).all()


def test_prototypes_do_not_depend_on_which_classes_are_frequent_at_a_site() -> None:
    centers, shifts = np.array([[0.0, 4.0], [3.0, 0.0], [-3.0, -4.0]]), np.array([[0.0, 0.0], [10.0, 20.0]])
    labels = np.repeat([0, 1, 2, 0, 1, 2], [30, 2, 1, 1, 5, 40])
    sites = np.repeat([0, 1], [33, 46])
    found = site_prototypes(centers[labels] + shifts[sites], labels, sites, 3)
    np.testing.assert_allclose(found, centers - centers.mean(axis=0), atol=1e-9)


def certain(predicted: IntArray, classes: int) -> FloatArray:
    return np.asarray(np.eye(classes)[predicted], dtype=np.float64)


def test_agreement_is_by_the_nearest_angle_and_classes_without_samples_never_agree() -> None:
    rng = np.random.default_rng(1)
    prototypes, labels = rng.normal(size=(4, 5)), rng.integers(0, 4, 80)
    prototypes[2] = np.nan
    predicted = np.where(labels == 2, 3, labels)
    features = rng.normal(size=(80, 5)) + 7
    shift = np.zeros(5)
    weights = 0.0
    for k in (0, 1, 3):
        n = int((predicted == k).sum())
        shift += n / (n + 5) * (features[predicted == k].mean(axis=0) - prototypes[k])
        weights += n / (n + 5)
    nearest = np.array([0, 1, 3])[cdist(features - shift / weights, prototypes[[0, 1, 3]], "cosine").argmin(axis=1)]
    expected = float((nearest == predicted).mean())
    assert 0 < expected < 1
    assert prototype_agreement(prototypes, features, certain(predicted, 4)) == pytest.approx(expected)
    assert prototype_agreement(prototypes, features, certain(np.full(80, 2), 4)) == 0.0


@pytest.mark.parametrize("counts", [(50, 50, 50), (140, 5, 5), (5, 5, 140)])
def test_agreement_does_not_depend_on_which_classes_are_frequent(counts: tuple[int, ...]) -> None:
    rng = np.random.default_rng(2)
    prototypes = np.array([[0.0, 4.0], [3.0, 0.0], [-3.0, -4.0]])
    labels = np.repeat([0, 1, 2], counts)
    features = prototypes[labels] + rng.normal(0, 0.3, (150, 2)) + np.array([30.0, -20.0])
    assert prototype_agreement(prototypes, features, certain(labels, 3)) > 0.97


def test_a_less_sure_and_farther_site_has_a_lower_estimate_and_a_larger_distance() -> None:
    known = reference()
    easy, hard = (read_signals(known, *outputs(300, sharp, shift, 5)[::2], 1.0) for sharp, shift in ((3, 0), (0.5, 3)))
    for name in ("confidence", "agreement", "dispersity"):
        assert getattr(hard, name) < getattr(easy, name) - 0.1
    assert hard.nearest > easy.nearest + 1


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


def test_the_threshold_for_sure_predictions() -> None:
    confidence = np.linspace(0.4, 1.0, 1000)
    correct = np.random.default_rng(0).random(1000) < confidence
    rule = choose_sure(confidence, correct)
    above = confidence >= rule.threshold
    assert correct[above].mean() == pytest.approx(rule.accuracy)
    assert rule.accuracy >= 0.9
    assert correct[confidence >= rule.threshold - 0.02].mean() < 0.9
    never = choose_sure(confidence, np.zeros(1000))
    assert never.accuracy == 0.0
    assert rule.useful
    assert not never.useful


def test_weights_count_as_repetitions_do() -> None:
    rng = np.random.default_rng(0)
    confidence, times = rng.uniform(0.4, 1.0, 300), rng.integers(1, 4, 300)
    correct = rng.random(300) < confidence
    rule = choose_sure(confidence, correct, times / 7)
    repeated = choose_sure(np.repeat(confidence, times), np.repeat(correct, times))
    assert astuple(rule) == pytest.approx(astuple(repeated))


def test_a_threshold_is_useful_if_its_predictions_are_right_at_least_as_often_as_wrong() -> None:
    assert SureRule(0.6, 0.5, 0.3).useful
    assert not SureRule(0.6, 0.494, 0.3).useful
    assert SureRule(0.6, 0.496, 0.3).useful  # "at best 50%" would be read as a mistake


@pytest.mark.parametrize(("distance", "dominance", "n", "reasons"), [
    (0.4, 0.1, 200, []), (0.9, 0.1, 200, ["distance"]), (0.4, 0.5, 200, ["dominance"]),
    (0.9, 0.7, 25, ["distance", "dominance", "few"]),
])  # fmt: skip
def test_an_unlike_site_has_a_wider_interval(distance: float, dominance: float, n: int, reasons: list[str]) -> None:
    sites = SiteKnowledge((HeldOutSite("x", 0.7, signals(0.3)), HeldOutSite("y", 0.5, signals(0.6, 0.5))), reference())
    found = estimate_site(sites, signals(distance, 0.8, n), dominance)
    assert found is not None
    assert found.doubt.reasons() == reasons
    assert found.unreliable is (reasons not in ([], ["few"]))
    assert (found.usual == found.accuracy) is (not reasons)
    assert found.accuracy.low <= found.usual.low < found.usual.high <= found.accuracy.high
    assert found.accuracy.mean == found.usual.mean
    assert (found.hardest.site, found.farthest.site) == ("y", "y")
    json.dumps(found.to_json(), allow_nan=False)


def test_the_numbers_of_an_estimate_stay() -> None:
    logits, _, features = outputs(150, 1.5, 0.8, 7)
    found = estimate_site(known(), read_signals(reference(), logits, features, 1.3), 0.05)
    assert found is not None
    numbers = (*astuple(found.accuracy), found.signals.agreement, found.signals.dispersity, found.signals.nearest)
    assert numbers == pytest.approx((0.59962694538, 0.12504775921, 0.94009919629, 0.76, 0.64835921610, 0.58307639082))


def test_few_samples_give_no_estimate() -> None:
    assert estimate_site(known(), signals(0.3, n=19), 0.0) is None


def test_a_site_whose_model_saw_a_single_site_convinces_less() -> None:
    alone = replace(signals(0.3), distances={"a": 0.3})
    for found, weight in ((signals(0.3), 1.0), (alone, 0.3)):
        assert HeldOutSite("x", 0.2, found).evidence().weight == weight


def test_what_is_kept_is_read_again(tmp_path: Path) -> None:
    held = HeldOutSite("a", 0.8, signals(0.3))
    write_knowledge(tmp_path, SiteKnowledge((held,), reference(), SureRule(0.6, 0.92, 0.7)), "w")
    found = read_knowledge(tmp_path, "w", 3)
    assert found is not None
    assert found.held_out == (held,)
    assert found.sure == SureRule(0.6, 0.92, 0.7)
    again = read_signals(found.reference, *outputs(300, 1.0, 1.0, 5)[::2], 1.0)
    first = read_signals(reference(), *outputs(300, 1.0, 1.0, 5)[::2], 1.0)
    assert again.distances == pytest.approx(first.distances, rel=1e-4)
    assert again.agreement == first.agreement


def test_a_model_of_train_has_no_knowledge(tmp_path: Path) -> None:
    assert read_knowledge(tmp_path, "w", 3) is None


def test_a_class_without_samples_has_no_mean(tmp_path: Path) -> None:
    prototypes = reference().prototypes.copy()
    prototypes[1] = np.nan
    write_knowledge(tmp_path, replace(known(), reference=replace(reference(), prototypes=prototypes)), "w")
    found = read_knowledge(tmp_path, "w", 3)
    assert found is not None
    assert np.isnan(found.reference.prototypes[1]).all()


def test_a_fit_that_learned_nothing_leaves_no_old_numbers(tmp_path: Path) -> None:
    write_knowledge(tmp_path, known(), "w")
    write_knowledge(tmp_path, None, "w")
    assert list(tmp_path.iterdir()) == []


def test_features_beyond_half_precision_stay_finite(tmp_path: Path) -> None:
    whole = reference()
    write_knowledge(tmp_path, replace(known(), reference=replace(whole, seen=1e5 * whole.seen)), "w")
    found = read_knowledge(tmp_path, "w", 3)
    assert found is not None
    np.testing.assert_allclose(found.reference.seen, 1e5 * whole.seen, rtol=1e-6)


@pytest.mark.parametrize(
    "change", [{"held_out": []}, {"schema": 1}, {"reference": {}}, {"sure": 3}, {"weights": "v"}, {"features": "x"}]
)
def test_damaged_knowledge_is_named(tmp_path: Path, change: dict[str, Any]) -> None:
    write_knowledge(tmp_path, known(), "w")
    write_json(tmp_path / "new_site.json", {**read_json(tmp_path / "new_site.json"), **change})
    with pytest.raises(LongshiftError, match=r"new_site\.json"):
        read_knowledge(tmp_path, "w", 3)


def test_features_of_another_model_are_refused(tmp_path: Path) -> None:
    whole = reference()
    for wrong in (replace(whole, seen=whole.seen[:, :4]), replace(whole, prototypes=whole.prototypes[:2])):
        write_knowledge(tmp_path, replace(known(), reference=wrong), "w")
        with pytest.raises(LongshiftError, match=r"new_site\.json"):
            read_knowledge(tmp_path, "w", 3)


def test_the_reference_keeps_the_rare_samples_of_many() -> None:
    labels = np.repeat([0, 1], [2 * KEPT, 7])
    rows = np.random.default_rng(0).normal(size=(len(labels), 3))
    found = make_reference(2, labels, rows, np.where(np.arange(len(labels)) % 2, "a", "b").tolist())
    assert len(found.seen) == KEPT
    assert np.bincount(found.seen_labels).tolist() == [KEPT - 7, 7]

"""Each metric against scikit-learn, scipy or explicit loops."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from scipy.special import softmax
from sklearn import metrics as sk

from longshift import metrics
from longshift.array_types import FloatArray, IntArray
from longshift.errors import LongshiftError, UsageError
from longshift.metrics import scores as scores_module

CLASSES, DOMAINS = 6, 3


def make(seed: int, n: int = 200, absent: int | None = None) -> tuple[FloatArray, IntArray, IntArray]:
    rng = np.random.default_rng(seed)
    labels = rng.choice([k for k in range(CLASSES) if k != absent], n).astype(np.int64)
    logits = 2 * rng.normal(size=(n, CLASSES))
    logits[np.arange(n), labels] += 1.5
    return logits, labels, rng.integers(0, DOMAINS, n)


def evaluate(
    logits: metrics.Array, labels: metrics.Array, domains: metrics.Array, **options: Any
) -> metrics.Evaluation:
    return metrics.evaluate_predictions(
        logits, labels, domains, classes=[f"c{k}" for k in range(CLASSES)], domain_names=list("abc"), **options
    )


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("absent", [None, 2])
def test_against_scikit_learn(seed: int, absent: int | None) -> None:
    logits, labels, domains = make(seed, absent=absent)
    predicted, p = logits.argmax(1), softmax(logits, axis=1)
    found = evaluate(logits, labels, domains)
    assert found.n == len(labels)
    assert found.accuracy == pytest.approx(sk.accuracy_score(labels, predicted), abs=1e-12)
    expected = sk.confusion_matrix(labels, predicted, labels=range(CLASSES))
    np.testing.assert_array_equal(found.confusion, expected)
    assert found.macro_f1 == pytest.approx(sk.f1_score(labels, predicted, average="macro"), abs=1e-12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn warns of predicted classes without samples
        balanced = sk.balanced_accuracy_score(labels, predicted)
    assert found.balanced_accuracy == pytest.approx(balanced, abs=1e-11)
    loss = sk.log_loss(labels, p, labels=range(CLASSES))
    assert found.nll == metrics.negative_log_likelihood(logits, labels) == pytest.approx(loss, abs=1e-10)
    np.testing.assert_allclose(metrics.probabilities(logits), p, atol=1e-14)
    by_domain = {
        name: sk.accuracy_score(labels[domains == d], predicted[domains == d]) for d, name in enumerate("abc")
    }  # fmt: skip
    assert found.per_domain == pytest.approx(by_domain)
    assert (found.worst_domain_name, found.worst_domain) == min(by_domain.items(), key=lambda item: item[1])
    # With weights that give each cell (domain and class) the same sum.
    cells = list(zip(domains.tolist(), labels.tolist(), strict=True))
    weighted = sk.accuracy_score(labels, predicted, sample_weight=[1 / cells.count(cell) for cell in cells])
    assert evaluate(logits, labels, domains, by_cell=True).accuracy == pytest.approx(weighted, abs=1e-11)


@pytest.mark.parametrize("seed", range(4))
def test_per_class_shots_and_margins_against_loops(seed: int) -> None:
    logits, labels, domains = make(seed, absent=4)
    per_class: dict[int, float] = {}
    for k in sorted(set(labels.tolist())):
        hits = [int(logits[i].argmax() == k) for i in range(len(labels)) if labels[i] == k]
        per_class[k] = sum(hits) / len(hits)
    found = evaluate(logits, labels, domains, shots=["many", "few", "few", "medium", "few", None])
    assert found.per_class == pytest.approx({f"c{k}": value for k, value in per_class.items()} | {"c4": None})
    # Classes weigh the same, whatever their number of samples; the absent class 4 does not count as zero.
    assert found.few == pytest.approx((per_class[1] + per_class[2]) / 2)
    assert (found.many, found.medium) == pytest.approx((per_class[0], per_class[3]))
    p, margins = softmax(logits, axis=1), metrics.margins(logits, labels)
    for i, value in enumerate(margins):
        others = [p[i, k] for k in range(CLASSES) if k != labels[i]]
        assert value == pytest.approx(p[i, labels[i]] - max(others), abs=1e-14)
    assert found.margin == pytest.approx(margins.mean())


def loop_ece(logits: FloatArray, labels: IntArray, bins: int) -> float:
    p = softmax(logits, axis=1)
    confidence, hit = p.max(1), p.argmax(1) == labels
    total = 0.0
    for b in range(bins):
        inside = (confidence > b / bins) & (confidence <= (b + 1) / bins)
        if inside.any():
            total += inside.mean() * abs(hit[inside].mean() - confidence[inside].mean())
    return total


@pytest.mark.parametrize("bins", [1, 10, 15])
def test_calibration_error_against_a_loop(bins: int) -> None:
    logits, labels, _ = make(7, n=500)
    expected = loop_ece(logits, labels, bins)
    assert expected > 0.01
    assert metrics.expected_calibration_error(logits, labels, bins) == pytest.approx(expected, abs=1e-12)


def test_calibration_error_known_value() -> None:
    # Confidence 0.9 always, right half of the time.
    logits = np.log(np.array([[0.9, 0.1]] * 10))
    labels = np.array([0, 1] * 5)
    assert metrics.expected_calibration_error(logits, labels) == pytest.approx(0.4)
    with pytest.raises(UsageError, match="bin"):
        metrics.expected_calibration_error(logits, labels, bins=0)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_tensors_give_the_numbers_of_arrays(dtype: torch.dtype) -> None:
    logits, labels, domains = make(3)
    tensor = torch.tensor(logits).to(dtype)
    ours = evaluate(tensor, torch.tensor(labels), torch.tensor(domains))
    assert ours == evaluate(tensor.double().numpy(), labels, domains)


def test_an_evaluation_is_json() -> None:
    logits, labels, domains = make(5, absent=1)
    domains[domains == 1] = 2  # domain "b" has no sample
    result = evaluate(logits, labels, domains, shots=["many", "few", "many", "many", "many", "many"])
    assert result.ece == metrics.expected_calibration_error(logits, labels)
    assert result.per_class["c1"] is result.few is result.medium is result.per_domain["b"] is None
    values = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    confusion = tuple(map(tuple, values["confusion"]))
    assert metrics.Evaluation(**{**values, "confusion": confusion}) == result


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_logits_that_are_not_finite_are_refused_by_the_runs_name(bad: float) -> None:
    logits, labels, _ = make(2)
    logits[17, 3] = bad
    with pytest.raises(LongshiftError, match=r"run-7: 1 .*row 17"):
        metrics.evaluate_predictions(logits, labels, None, classes=["x"] * CLASSES, source="run-7")


def test_the_complaint_counts_rows_of_all_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    logits, labels, _ = make(2)
    logits[[17, 150], 3] = np.nan
    monkeypatch.setattr(scores_module, "_CHUNK", 16)
    with pytest.raises(LongshiftError, match=r"^2 .*row 17"):
        metrics.margins(logits, labels)


def test_wrong_shapes_and_labels_are_refused() -> None:
    logits, labels, domains = make(2)
    with pytest.raises(LongshiftError, match="200 labels"):
        metrics.margins(logits, labels[:-1])
    with pytest.raises(LongshiftError, match=r"0\.\.5"):
        metrics.margins(logits, labels + 1)
    with pytest.raises(LongshiftError, match="shape"):
        metrics.margins(logits[:0], labels[:0])
    with pytest.raises(LongshiftError, match="5 classes"):
        metrics.evaluate_predictions(logits, labels, None, classes=["x"] * 5)
    with pytest.raises(LongshiftError, match="domains"):
        metrics.evaluate_predictions(logits, labels, domains, classes=["x"] * 6, domain_names=["a", "b"])
    with pytest.raises(LongshiftError, match="shot"):
        evaluate(logits, labels, domains, shots=["few"])


@given(st.integers(0, 10_000), st.floats(-50, 50))
@settings(max_examples=30, deadline=None)
def test_shift_invariance_and_sign_of_the_margin(seed: int, shift: float) -> None:
    logits, labels, _ = make(seed, n=20)
    gamma = metrics.margins(logits, labels)
    np.testing.assert_allclose(metrics.margins(logits + shift, labels), gamma, atol=1e-9)
    np.testing.assert_array_equal(gamma > 0, logits.argmax(1) == labels)
    assert np.abs(gamma).max() <= 1

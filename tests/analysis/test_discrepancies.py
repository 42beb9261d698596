"""Margins, posterior and prior discrepancies against scipy, POT, closed forms and loops; unhappy inputs."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import ot
import pytest
import torch
from hypothesis import given, settings, strategies as st
from scipy.spatial.distance import jensenshannon
from scipy.special import softmax

from longshift.analysis.discrepancies import (
    centroid_distances,
    margin_summary,
    posterior_discrepancy,
    prior_discrepancy,
    wasserstein,
)
from longshift.analysis.domains import DomainOutputs, by_domain, domain_outputs
from longshift.array_types import FloatArray
from longshift.errors import LongshiftError
from longshift.metrics.probabilistic import js_divergence

CLASSES = 4


def outputs(seed: int, n: int = 60, absent: int | None = None, shift: float = 0.0, dims: int = 5) -> DomainOutputs:
    rng = np.random.default_rng(seed)
    labels = rng.choice([k for k in range(CLASSES) if k != absent], n)
    logits = rng.normal(size=(n, CLASSES)) + 2 * np.eye(CLASSES)[labels]
    return domain_outputs(f"d{seed}", logits, labels, rng.normal(size=(n, dims)) + shift)


def test_margins_by_hand() -> None:
    p = np.array([[0.7, 0.2, 0.1], [0.3, 0.6, 0.1], [0.25, 0.5, 0.25], [0.5, 0.5 - 1e-9, 1e-9]])
    summary = margin_summary(np.log(p), np.array([0, 0, 2, 0]))
    assert summary.average == pytest.approx((0.5 - 0.3 - 0.25 + 0.0) / 4, abs=1e-6)
    assert summary.small == 0.5
    np.testing.assert_allclose(summary.per_class, [0.2 / 3, np.nan, -0.25], atol=1e-6)
    assert margin_summary(np.log(p), np.array([0, 0, 2, 0]), delta=0.5 + 1e-12).small == 1.0
    assert margin_summary(torch.tensor(np.log(p)), torch.tensor([0, 0, 2, 0])).average == summary.average


@given(st.integers(0, 1000), st.integers(2, 6))
@settings(max_examples=40, deadline=None)
def test_js_divergence_against_scipy(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet(np.ones(k) * 0.5, size=2)
    p[0] = 0.0  # zero probabilities are allowed
    p /= p.sum()
    value = float(js_divergence(p, q))
    assert value == pytest.approx(float(jensenshannon(p, q)) ** 2, abs=1e-9)
    assert 0 <= value <= math.log(2) + 1e-12


def test_posterior_discrepancy_against_loops_and_scipy() -> None:
    sources = [outputs(1), outputs(2, absent=3), outputs(3)]
    target = outputs(4, absent=0)
    found = posterior_discrepancy(sources, target)

    def mean(domain: DomainOutputs, k: int) -> FloatArray | None:
        rows = [softmax(domain.logits[i]) for i in range(len(domain)) if domain.labels[i] == k]
        return np.mean(rows, axis=0) if rows else None

    per_class = []
    for k in range(CLASSES):
        goal = mean(target, k)
        values = [
            float(jensenshannon(row, goal)) ** 2
            for row in (mean(d, k) for d in sources)
            if row is not None and goal is not None
        ]
        per_class.append(float(np.mean(values)) if values else math.nan)
    np.testing.assert_allclose(found.per_class, per_class, atol=1e-12)
    assert found.average == pytest.approx(np.nanmean(per_class))
    assert math.isnan(found.per_class[0])  # a class absent from the target is not counted as zero
    between = []
    for k in range(CLASSES):
        rows = [row for row in (mean(d, k) for d in sources) if row is not None]
        between.append(np.mean([float(jensenshannon(a, b)) ** 2 for a, b in combinations(rows, 2)]))
    assert found.between_sources == pytest.approx(float(np.mean(between)))


def test_one_source_has_no_pairs() -> None:
    found = posterior_discrepancy([outputs(1)], outputs(2))
    assert math.isnan(found.between_sources)
    assert found.average > 0
    prior = prior_discrepancy([outputs(1)], outputs(2))
    assert prior.source_source is None
    assert prior.source_target > 0


def test_a_shift_is_measured_to_the_digit() -> None:
    rng = np.random.default_rng(1)
    x, shift = rng.normal(size=(300, 8)), np.arange(8.0)
    length = float(np.linalg.norm(shift))
    assert wasserstein(x, x + shift) == pytest.approx(length, rel=1e-9)
    sliced = wasserstein(x, x + shift, "sliced", projections=4000, seed=3)
    assert sliced == pytest.approx(length / math.sqrt(8), rel=0.05)
    assert wasserstein(x, x + shift, limit=299) == pytest.approx(sliced, rel=0.2)


def test_exact_and_sliced_against_pot_itself() -> None:
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(120, 6)), 1.5 * rng.normal(size=(90, 6)) + 0.5
    assert wasserstein(x, y) == pytest.approx(ot.solve_sample(x, y).value ** 0.5, rel=1e-8)
    pots = float(ot.sliced_wasserstein_distance(x, y, n_projections=3000, seed=5))
    assert wasserstein(x, y, "sliced", projections=3000) == pytest.approx(pots, rel=0.03)


def test_prior_discrepancy_of_shifted_copies() -> None:
    base = outputs(1)
    x = base.features()

    def copy(name: str, shift: float) -> DomainOutputs:
        return domain_outputs(name, base.logits, base.labels, x + np.array([shift, 0, 0, 0, 0]))

    found = prior_discrepancy([copy("a", 0.0), copy("b", 1.0), copy("c", 3.0)], copy("t", 6.0))
    assert found.names == ("a", "b", "c", "t")
    assert found.source_source == pytest.approx((1 + 3 + 2) / 3)
    assert found.source_target == pytest.approx((6 + 5 + 3) / 3)
    np.testing.assert_allclose(found.distances, found.distances.T)
    mixed = prior_discrepancy([copy("a", 0.0), outputs(2, n=90)], copy("t", 6.0), limit=70)
    assert mixed.kind == "sliced"  # one domain is too large: all pairs are sliced, so that they compare


def test_centroid_distances() -> None:
    x = np.array([[0.0, 0.0], [2.0, 0.0], [4.0, 3.0], [4.0, 5.0]])
    found = centroid_distances(x, np.array([0, 0, 1, 1]), 3)
    np.testing.assert_allclose(found, [math.hypot(1.5, 2), math.hypot(1.5, 2), np.nan])
    # A class that is the whole domain sits on the centroid.
    assert centroid_distances(x, np.zeros(4, dtype=np.int64), 1)[0] == 0.0


def test_taking_domains_apart() -> None:
    rng = np.random.default_rng(0)
    logits, labels, domains = rng.normal(size=(20, 3)), rng.integers(0, 3, 20), rng.integers(0, 2, 20)
    parts = by_domain(torch.tensor(logits), torch.tensor(labels), torch.tensor(domains), ["a", "b", "empty"])
    assert [p.name for p in parts] == ["a", "b"]
    np.testing.assert_array_equal(parts[1].logits, logits[domains == 1])
    np.testing.assert_array_equal(parts[1].labels, labels[domains == 1])


def test_refusals_name_the_run_and_the_domain() -> None:
    logits = np.zeros((4, 3))
    logits[2, 1] = np.nan
    labels = np.zeros(4, dtype=np.int64)
    with pytest.raises(LongshiftError, match=r"run-3.*photo"):
        domain_outputs("photo", logits, labels, source="run-3")
    with pytest.raises(LongshiftError, match="run-3"):
        margin_summary(logits, labels, source="run-3")
    with pytest.raises(LongshiftError, match="4 embeddings"):
        domain_outputs("photo", np.zeros((4, 3)), labels, np.zeros((5, 2)))
    plain = domain_outputs("photo", np.zeros((4, 3)), labels)
    with pytest.raises(LongshiftError, match="photo"):
        prior_discrepancy([plain], plain)
    with pytest.raises(LongshiftError, match="source"):
        posterior_discrepancy([], plain)
    with pytest.raises(LongshiftError, match=r"\[3, 4\]"):
        posterior_discrepancy([outputs(1)], plain)
    with pytest.raises(LongshiftError, match="points"):
        wasserstein(np.zeros((3, 2)), np.zeros((3, 4)))

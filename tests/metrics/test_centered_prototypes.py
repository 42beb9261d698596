"""Class means without what sites have of their own, against another library and plain loops."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.linear_model import LinearRegression

from longshift.array_types import FloatArray, IntArray
from longshift.metrics import prototype_agreement, site_prototypes


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

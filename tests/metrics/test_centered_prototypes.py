"""Class means without what sites have of their own, against plain loops and another library."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from longshift.metrics import prototype_agreement, site_prototypes


def test_prototypes_against_a_plain_loop() -> None:
    rng = np.random.default_rng(0)
    features, labels, sites = rng.normal(size=(60, 5)), rng.integers(0, 3, 60), rng.integers(0, 2, 60)
    found = site_prototypes(features, labels, sites, 4)
    for k in range(3):
        rows = [features[i] - features[sites == sites[i]].mean(axis=0) for i in range(60) if labels[i] == k]
        np.testing.assert_allclose(found[k], np.mean(rows, axis=0))
    assert np.isnan(found[3]).all()


def test_agreement_is_by_the_nearest_angle_and_classes_without_samples_never_agree() -> None:
    rng = np.random.default_rng(1)
    prototypes, features = rng.normal(size=(4, 5)), rng.normal(size=(80, 5)) + 7
    prototypes[2] = np.nan
    nearest = cdist(features - features.mean(axis=0), prototypes[[0, 1, 3]], "cosine").argmin(axis=1)
    predicted = np.array([0, 1, 3])[nearest]
    assert prototype_agreement(prototypes, features, predicted) == 1.0
    predicted[:20] = 2
    assert prototype_agreement(prototypes, features, predicted) == 0.75

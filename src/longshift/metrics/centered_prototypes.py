"""Class means without what each site has of its own, as a second opinion on predictions at another site."""

from __future__ import annotations

import numpy as np

from longshift.array_types import FloatArray, IntArray
from longshift.metrics.arrays import Array, floats

HALF = 5.0  # samples of a class with which it counts half as much, for the shift of a site, as one with very many


def site_prototypes(features: Array, labels: IntArray, sites: Array, classes: int) -> FloatArray:
    """Compute the mean features of each class without what each site adds to all of its samples.

    Features are explained by a sum of a class and a site (least squares), so that classes which are frequent at a site
    do not shift the others there.

    Args:
        features: Features (N, D).
        labels: Classes (N,).
        sites: The site of each sample (N,), names or numbers.
        classes: Number of classes.

    Returns:
        The part of each class (classes, D), zero on average over classes; NaN for a class without samples.

    Example:
        >>> site_prototypes(np.array([[1.0], [3.0], [11.0], [13.0]]), np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1]), 2)
        array([[-1.],
               [ 1.]])
    """
    there, kinds = np.unique(labels, return_inverse=True)
    places, where = np.unique(np.asarray(sites), return_inverse=True)
    rows = np.hstack([np.eye(len(there))[kinds], np.eye(len(places))[where]])
    parts = (np.linalg.pinv(rows.T @ rows) @ (rows.T @ floats(features)))[: len(there)]
    found = np.full((classes, parts.shape[1]), np.nan)
    found[there] = parts - parts.mean(axis=0)
    return found


def prototype_agreement(prototypes: FloatArray, features: Array, probabilities: Array) -> float:
    """Compute the share of predictions at a site that the nearest prototype agrees with.

    What the site adds to all of its features is removed first: the mean over predicted classes of how far the samples
    of a class lie from its prototype. Every class counts about equally, so the share does not depend on which classes
    are frequent at the site. Nearest is by angle. Where a new site moves all features, and predictions with them, this
    opinion stays: the fewer predictions agree with it, the fewer are right.

    Args:
        prototypes: From `site_prototypes`.
        features: Features of the site's samples (N, D).
        probabilities: Predicted probabilities (N, classes).

    Returns:
        The share, from 0 to 1.

    Example:
        >>> moved = np.array([[99.0], [101.0], [101.0], [101.0]])
        >>> shares = np.array([[0.8, 0.2], [0.2, 0.8], [0.2, 0.8], [0.7, 0.3]])
        >>> prototype_agreement(np.array([[-1.0], [1.0]]), moved, shares)
        0.75
    """
    rows, shares = floats(features), floats(probabilities)
    rows = rows - _site_shift(prototypes, rows, shares)
    lengths = np.maximum(np.linalg.norm(prototypes, axis=1, keepdims=True), 1e-12)
    angles = rows @ (prototypes / lengths).T
    nearest = np.where(np.isnan(angles), -np.inf, angles).argmax(axis=1)
    return float((nearest == shares.argmax(axis=1)).mean())


def _site_shift(prototypes: FloatArray, features: FloatArray, shares: FloatArray) -> FloatArray:
    """What a site adds to the features of all classes, from predictions instead of labels."""
    known = ~np.isnan(prototypes).any(axis=1)
    shares = np.square(shares)  # or the many unlikely samples of a frequent class would outweigh the few of a rare one
    counts = shares.sum(axis=0)
    weights = np.where(known & (counts >= 1), counts / (counts + HALF), 0.0)
    if weights.sum() == 0:
        return np.asarray(features.mean(axis=0), dtype=np.float64)
    means = (shares.T @ features) / np.maximum(counts, 1e-12)[:, None]
    return np.asarray(weights @ (means - np.nan_to_num(prototypes)) / weights.sum(), dtype=np.float64)

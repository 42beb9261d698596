"""Class means without what each site has of its own, as a second opinion on predictions at another site."""

from __future__ import annotations

import numpy as np

from longshift.array_types import IntArray
from longshift.metrics.arrays import Array, FloatArray, floats


def site_prototypes(features: Array, labels: IntArray, sites: Array, classes: int) -> FloatArray:
    """Compute the mean features of each class after subtracting the mean of each sample's site.

    Args:
        features: Features (N, D).
        labels: Classes (N,).
        sites: The site of each sample (N,), names or numbers.
        classes: Number of classes.

    Returns:
        The means (classes, D); NaN for a class without samples.

    Example:
        >>> site_prototypes(np.array([[1.0], [3.0], [11.0], [13.0]]), np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1]), 2)
        array([[-1.],
               [ 1.]])
    """
    rows, place = floats(features).copy(), np.asarray(sites)
    for site in np.unique(place):
        rows[place == site] -= rows[place == site].mean(axis=0)
    found = np.full((classes, rows.shape[1]), np.nan)
    for k in np.unique(labels):
        found[k] = rows[labels == k].mean(axis=0)
    return found


def prototype_agreement(prototypes: FloatArray, features: Array, predicted: Array) -> float:
    """Compute the share of predictions at a site that the nearest prototype agrees with.

    The site's mean is subtracted from its features; nearest is by angle. Where a new site moves all features, and
    predictions with them, this opinion stays: the fewer predictions agree with it, the fewer are right.

    Args:
        prototypes: From `site_prototypes`.
        features: Features of the site's samples (N, D).
        predicted: Predicted classes (N,).

    Returns:
        The share, from 0 to 1.

    Example:
        >>> moved = np.array([[100.0], [102.0]])
        >>> prototype_agreement(np.array([[-1.0], [1.0]]), moved, np.array([1, 1]))
        0.5
    """
    rows = floats(features)
    rows = rows - rows.mean(axis=0)
    lengths = np.maximum(np.linalg.norm(prototypes, axis=1, keepdims=True), 1e-12)
    angles = rows @ (prototypes / lengths).T
    nearest = np.where(np.isnan(angles), -np.inf, angles).argmax(axis=1)
    return float((nearest == np.asarray(predicted)).mean())

"""Which samples of a new site to label: uncertain, unlike each other, and of rare predicted classes too."""

from __future__ import annotations

import numpy as np

from longshift.array_types import FloatArray, IntArray
from longshift.metrics import negative_entropy


def choose_samples(probabilities: FloatArray, features: FloatArray, n: int, seed: int = 0) -> IntArray:
    """Choose n samples by weighted k-means on the features (CLUE; Prabhu et al., ICCV 2021).

    The weight of a sample is the entropy of its prediction over the root of the share of its predicted class, so that
    certain predictions count little and rare classes are not left out. Of each of the n clusters the sample next to
    its center is chosen.

    Args:
        probabilities: Calibrated probabilities (N, K).
        features: Features (N, D).
        n: Number of samples.
        seed: Seed of k-means.

    Returns:
        Indices of the samples, in the order of the input.
    """
    from sklearn.cluster import KMeans

    if n >= len(probabilities):
        return np.arange(len(probabilities))
    predicted = probabilities.argmax(axis=1)
    share = np.bincount(predicted, minlength=probabilities.shape[1])[predicted] / len(predicted)
    weight = (np.maximum(-negative_entropy(probabilities), 0) + 1e-3) / np.sqrt(share)
    rows = np.asarray(features, dtype=np.float64)
    fitted = KMeans(n, n_init=1, random_state=seed).fit(rows, sample_weight=weight)
    chosen: list[int] = []
    for cluster, center in enumerate(fitted.cluster_centers_):
        members = np.flatnonzero(fitted.labels_ == cluster)
        if len(members):
            chosen.append(int(members[np.square(rows[members] - center).sum(axis=1).argmin()]))
    taken = set(chosen)  # an empty cluster is replaced by the heaviest sample that is left
    left = [int(i) for i in np.argsort(-weight, kind="stable") if int(i) not in taken]
    return np.sort(np.array([*chosen, *left][:n], dtype=np.int64))

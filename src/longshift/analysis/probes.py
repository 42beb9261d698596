"""Linear probes on embeddings that estimate the divergences of the bound, always evaluated out of fold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longshift.array_types import FloatArray, IntArray

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

FOLDS = 5


def domain_hits(x: FloatArray, is_second: IntArray, weights: FloatArray, seed: int = 0) -> FloatArray | None:
    """Return for each sample whether a linear classifier, out of fold, recognizes its domain among two: (N,) of 0, 1.

    With accuracies a on the first and b on the second domain, a + b - 1 estimates from below the total variation
    sup_A |P(A) - Q(A)|, with the supremum over half-spaces: half the proxy A-distance of Ben-David et al.
    Returns None if one of the two has a single sample, so that none can be held out.
    """
    from sklearn.model_selection import StratifiedKFold  # takes a second to import

    sizes = np.bincount(is_second, minlength=2)
    if sizes.min() < 2:
        return None
    hits = np.zeros(len(x))
    balanced = weights.copy()
    for side in (0, 1):
        balanced[is_second == side] /= weights[is_second == side].sum()
    balanced *= len(x) / balanced.sum()
    splitter = StratifiedKFold(min(FOLDS, int(sizes.min())), shuffle=True, random_state=seed)
    for train, held in splitter.split(x, is_second):
        if not all(balanced[train][is_second[train] == side].any() for side in (0, 1)):
            return None
        model = _probe()
        model.fit(x[train], is_second[train], logisticregression__sample_weight=balanced[train])
        hits[held] = model.predict(x[held]) == is_second[held]
    return hits


def posterior_at(x: FloatArray, y: IntArray, points: FloatArray, classes: int) -> FloatArray:
    """Estimate P(Y | X = point) of a domain with a multinomial logistic probe; a class it lacks gets 0."""
    result = np.zeros((len(points), classes))
    present = np.unique(y)
    if len(present) == 1:
        result[:, present[0]] = 1.0
        return result
    model = _probe().fit(x, y)
    result[:, model.classes_] = model.predict_proba(points)
    return result


def posterior_out_of_fold(x: FloatArray, y: IntArray, classes: int, seed: int = 0) -> FloatArray | None:
    """Estimate P(Y | X = x_i) at the samples of a domain, out of fold. Returns None with one sample."""
    if len(x) < 2:
        return None
    result = np.zeros((len(x), classes))
    order = np.random.default_rng(seed).permutation(len(x))
    # Assigning the samples of each class to folds in turn keeps the class shares of every fold close to the domain's.
    turn = order[np.argsort(y[order], kind="stable")]
    fold = np.empty(len(x), dtype=np.int64)
    fold[turn] = np.arange(len(x)) % min(FOLDS, len(x))
    for k in range(min(FOLDS, len(x))):
        train, held = fold != k, fold == k
        result[held] = posterior_at(x[train], y[train], x[held], classes)
    return result


def total_variation(p: FloatArray, q: FloatArray) -> FloatArray:
    """Compute sup_A |p(A) - q(A)| = sum_k |p_k - q_k| / 2 along the last axis."""
    result: FloatArray = np.abs(p - q).sum(axis=-1) / 2
    return result


def _probe() -> Pipeline:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))

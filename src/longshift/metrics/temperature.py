"""Temperature scaling: one number that makes probabilities honest (Guo et al., ICML 2017)."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import minimize_scalar

from longshift.metrics.arrays import Array, finite_rows, indices
from longshift.metrics.scores import log_softmax

LOWEST, HIGHEST = 0.05, 20.0


def fit_temperature(logits: Array, labels: Array, source: str | None = None) -> float:
    """The T that minimises the mean negative log-likelihood of softmax(logits / T).

    Targets are smoothed as in Platt scaling, with (n + 1) / (n + 2) on the true class of n samples, so that a small
    set without a single mistake does not ask for infinite confidence.

    >>> overconfident = np.array([[9.0, 0.0], [9.0, 0.0], [0.0, 9.0], [0.0, 9.0]])
    >>> fit_temperature(overconfident, np.array([0, 1, 1, 0])) > 10  # right half of the time only
    True
    """
    rows = finite_rows(logits, "logits", source)
    n, classes = rows.shape
    truth = indices(labels, n, classes, "labels", source)
    targets = np.full((n, classes), 1 / (n + 2) / (classes - 1))
    targets[np.arange(n), truth] = (n + 1) / (n + 2)

    def nll(log_t: float) -> float:
        return -float((targets * log_softmax(rows / math.exp(log_t))).sum(axis=1).mean())

    # The negative log-likelihood is convex in 1 / T, so that its only minimum is found.
    found = minimize_scalar(
        nll, bounds=(math.log(LOWEST), math.log(HIGHEST)), method="bounded", options={"xatol": 1e-6}
    )
    return float(math.exp(found.x))

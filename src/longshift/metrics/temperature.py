"""Temperature scaling: one number that calibrates probabilities (Guo et al., ICML 2017)."""

from __future__ import annotations

import math

import numpy as np

from longshift.metrics.arrays import Array, finite_rows, indices
from longshift.metrics.scores import log_softmax

LOWEST, HIGHEST = 0.05, 20.0


def fit_temperature(logits: Array, labels: Array, source: str | None = None) -> float:
    """Find the temperature T that minimizes the mean negative log-likelihood of softmax(logits / T).

    Targets are smoothed as in Platt scaling, with (n + 1) / (n + 2) on the true class of n samples, so that a small
    set without mistakes does not lead to infinite confidence.

    Args:
        logits: Logits (N, K) of a validation set.
        labels: True classes (N,).
        source: Name of the run, for error messages.

    Returns:
        The temperature, between 0.05 and 20.

    Raises:
        LongshiftError: If shapes do not match or logits are not finite.

    Example:
        >>> overconfident = np.array([[9.0, 0.0], [9.0, 0.0], [0.0, 9.0], [0.0, 9.0]])
        >>> fit_temperature(overconfident, np.array([0, 1, 1, 0])) > 10  # only half are correct
        True
    """
    from scipy.optimize import minimize_scalar  # takes half a second to import

    rows = finite_rows(logits, "logits", source)
    n, classes = rows.shape
    truth = indices(labels, n, classes, "labels", source)
    targets = np.full((n, classes), 1 / (n + 2) / (classes - 1))
    targets[np.arange(n), truth] = (n + 1) / (n + 2)

    def nll(log_t: float) -> float:
        return -float((targets * log_softmax(rows / math.exp(log_t))).sum(axis=1).mean())

    # The negative log-likelihood is convex in 1 / T, so it has a single minimum.
    found = minimize_scalar(
        nll, bounds=(math.log(LOWEST), math.log(HIGHEST)), method="bounded", options={"xatol": 1e-6}
    )
    return float(math.exp(found.x))

"""When a prediction counts as sure: a probability above which enough predictions were right at held-out sites."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from longshift.array_types import FloatArray
from longshift.metrics import Array

WANTED = 0.9  # share of right predictions above the probability
FEWEST = 0.05  # of all predictions
LEAST = 0.5  # share of right predictions: with less, those above the probability are wrong more often than right


@dataclass(frozen=True)
class SureRule:
    """A probability, and how often predictions above it were right at the held-out sites."""

    threshold: float
    accuracy: float
    coverage: float  # share of the predictions above it

    @property
    def useful(self) -> bool:
        """Whether at least `LEAST` of the predictions above the probability were right, in whole percent."""
        return round(100 * self.accuracy) >= 100 * LEAST

    def why_all_unsure(self) -> str:
        """Why no prediction counts as sure, in a sentence; "" if some may.

        >>> SureRule(0.63, 0.24, 0.1).why_all_unsure()
        'All predictions are unsure: at held-out sites, no threshold was found above which at least 50% of the \
predictions were right (at best 24%).'
        >>> SureRule(0.63, 0.92, 0.5).why_all_unsure()
        ''
        """
        if self.useful:
            return ""
        return (
            f"All predictions are unsure: at held-out sites, no threshold was found above which at least "
            f"{100 * LEAST:.0f}% of the predictions were right (at best {100 * self.accuracy:.0f}%)."
        )


def choose_sure(confidence: FloatArray, correct: Array, weights: FloatArray | None = None) -> SureRule:
    """Choose the lowest probability above which at least `WANTED` of the predictions at held-out sites are right.

    If none is that good, choose the one with the highest accuracy above it, which may not be `useful`. Predictions
    count by their `weights` (by default all the same), and those above must have at least a share of `FEWEST`.
    """
    grid = np.round(np.arange(0.3, 0.995, 0.01), 2)
    weight = np.ones(len(confidence)) if weights is None else np.asarray(weights, dtype=np.float64)
    weight = weight / weight.sum()
    right = weight * np.asarray(correct, dtype=np.float64)
    rules = [
        SureRule(float(t), float(right[above].sum() / share), float(share))
        for t in grid
        if (share := weight[above := confidence >= t].sum()) >= FEWEST
    ]
    if not rules:  # no confident prediction at all
        return SureRule(0.5, float(right.sum()), 1.0)
    return next((rule for rule in rules if rule.accuracy >= WANTED), max(rules, key=lambda rule: rule.accuracy))

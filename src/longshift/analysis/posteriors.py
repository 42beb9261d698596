"""Posterior discrepancy: the difference between a model's predictions for one class in two domains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from longshift.analysis.domains import DomainOutputs, check_domains
from longshift.array_types import FloatArray
from longshift.metrics import class_posteriors, js_divergence, nan_mean, probabilities


@dataclass(frozen=True, eq=False)
class PosteriorDiscrepancy:
    """Jensen-Shannon divergences (nats, 0 to log 2) of class-mean posteriors; NaN for an absent class.

    `average` is the mean over the measurable classes, or NaN if there are none.
    """

    per_source: FloatArray  # (D, K) each source against the target
    per_class: FloatArray  # (K,) mean over the sources that have the class
    average: float  # mean of `per_class`
    between_sources_per_class: FloatArray  # (K,) mean over pairs of sources
    between_sources: float
    absent: tuple[int, ...]  # classes that cannot be measured: not in the target, or in no source


def posterior_discrepancy(sources: Sequence[DomainOutputs], target: DomainOutputs) -> PosteriorDiscrepancy:
    """Compute how far the class-mean posteriors of the sources are from those of the target.

    PD_k = mean_d JS(mean_{x in (d, k)} p(. | x), mean_{x in (T, k)} p(. | x)). All source domains and all classes have
    the
    same weight, whatever their size.

    Args:
        sources: Outputs on the source domains.
        target: Outputs on the target.

    Returns:
        The discrepancy per class and its mean, and the same between pairs of sources.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> def outputs(name, shift):
        ...     x, y = rng.normal(shift, 1, (60, 3)), np.arange(60) % 3
        ...     return DomainOutputs(name, x + 3 * np.eye(3)[y], y, x)

        >>> found = posterior_discrepancy([outputs("a", 0), outputs("b", 1)], outputs("c", 2))
        >>> bool(0 <= found.average <= np.log(2))
        True
    """
    check_domains(sources, target)
    rows = [class_posteriors(probabilities(d.logits, d.name), d.labels) for d in sources]
    goal = class_posteriors(probabilities(target.logits, target.name), target.labels)
    per_source = np.stack([js_divergence(row, goal) for row in rows])
    per_class = nan_mean(per_source)
    pairs = [js_divergence(a, b) for a, b in combinations(rows, 2)]
    between = nan_mean(np.stack(pairs)) if pairs else np.full(target.classes, np.nan)
    return PosteriorDiscrepancy(
        per_source=per_source,
        per_class=per_class,
        average=float(nan_mean(per_class)),
        between_sources_per_class=between,
        between_sources=float(nan_mean(between)),
        absent=tuple(int(k) for k in np.flatnonzero(np.isnan(per_class))),
    )

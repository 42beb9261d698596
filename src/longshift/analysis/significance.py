"""Significance tests over many cases: Friedman, Nemenyi, and Wilcoxon with Holm's correction.

A case is one column of a comparison (dataset, setting, target, ...). All functions take a data frame with one row per
case and one column per method. Higher is better.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from scipy import stats

from longshift.array_types import FloatArray
from longshift.errors import LongshiftError, UsageError


@dataclass(frozen=True)
class Friedman:
    """Average ranks (1 is best), the Friedman statistic, and Iman and Davenport's F, which is less conservative."""

    ranks: dict[str, float]  # best first
    cases: int
    chi2: float
    chi2_p: float
    f: float
    f_p: float
    df: tuple[int, int]  # of F

    @property
    def unanimous(self) -> bool:
        """Whether all cases rank the methods alike, so that F is infinite."""
        return math.isinf(self.f)


@dataclass(frozen=True)
class PairTest:
    """Wilcoxon's signed-rank test of two methods; `p_holm` is corrected for all tested pairs."""

    better: str
    worse: str
    statistic: float
    p: float
    p_holm: float


def rank_table(scores: pd.DataFrame) -> pd.DataFrame:
    """Rank the methods in each case; 1 is best, and ties (up to rounding errors) share their mean rank."""
    ranks = stats.rankdata(-_checked(scores), axis=1, method="average")
    return pd.DataFrame(ranks, index=scores.index, columns=scores.columns)


def friedman(scores: pd.DataFrame) -> Friedman:
    """Test whether methods differ (Friedman, and Iman and Davenport 1980).

    With k methods, N cases and average ranks R_j:

    chi2 = 12 N / (k (k+1)) [sum_j R_j^2 - k (k+1)^2 / 4] / (1 - sum (t^3 - t) / (N k (k^2 - 1)))   (t: sizes of ties)
    F    = (N-1) chi2 / (N (k-1) - chi2),  with (k-1, (k-1)(N-1)) degrees of freedom

    If all cases agree, F is infinite. By chance this has probability k!^-(N-1), which is used as a lower limit of the
    p-value of F.

    Args:
        scores: Larger is better: one row per case, one column per method.

    Returns:
        Average ranks (1 is best), both statistics and their p-values.

    Raises:
        LongshiftError: If there are too few methods or cases, or a number is missing.

    Example:
        >>> import pandas as pd
        >>> friedman(pd.DataFrame({"a": [3, 3, 2], "b": [2, 2, 3], "c": [1, 1, 1]})).ranks["c"]
        3.0
    """
    ranks = rank_table(scores).to_numpy(dtype=np.float64)
    n, k = ranks.shape
    mean = ranks.mean(axis=0)
    ties = sum(float((t**3 - t).sum()) for t in (np.unique(row, return_counts=True)[1] for row in ranks))
    correction = 1 - ties / (n * k * (k**2 - 1))
    chi2 = 0.0  # all methods are tied in every case: no evidence of a difference
    if correction > 0:
        chi2 = float(12 * n / (k * (k + 1)) * (np.square(mean).sum() - k * (k + 1) ** 2 / 4) / correction)
    rest = n * (k - 1) - chi2
    f = (n - 1) * chi2 / rest if rest > 1e-9 else math.inf
    df = (k - 1, (k - 1) * (n - 1))
    order = np.argsort(mean, kind="stable")
    return Friedman(
        ranks={str(scores.columns[j]): float(mean[j]) for j in order},
        cases=n,
        chi2=chi2,
        chi2_p=float(stats.chi2.sf(chi2, k - 1)),
        f=float(f),
        f_p=max(0.0 if math.isinf(f) else float(stats.f.sf(f, *df)), math.exp(-(n - 1) * math.lgamma(k + 1))),
        df=df,
    )


def nemenyi_critical_difference(methods: int, cases: int, alpha: float = 0.05) -> float:
    """Compute the critical difference of average ranks, CD = q_alpha(k) / sqrt(2) sqrt(k (k+1) / (6 N)).

    Args:
        methods: Number of methods k.
        cases: Number of cases N.
        alpha: Level of significance.

    Returns:
        The difference of average ranks from which on two methods differ significantly. q_alpha(k) is the upper
        quantile of
        the studentized range of k groups with infinite degrees of freedom.

    Raises:
        LongshiftError: There are fewer than two methods or cases.
        UsageError: `alpha` is not between 0 and 1.

    Example:
        >>> round(nemenyi_critical_difference(24, 32), 2)
        6.43
    """
    _enough(methods, cases)
    if not 0 < alpha < 1:
        raise UsageError(f"expected a significance level between 0 and 1, found {alpha}")
    quantile = float(stats.studentized_range.isf(alpha, methods, np.inf))
    return quantile / math.sqrt(2) * math.sqrt(methods * (methods + 1) / (6 * cases))


def rank_groups(ranks: dict[str, float], critical_difference: float) -> tuple[tuple[str, ...], ...]:
    """Return the bars of a critical-difference diagram: maximal groups of methods whose ranks span at most the CD.

    A method that differs from all others is in no group.
    """
    names = sorted(ranks, key=lambda name: ranks[name])
    groups: list[tuple[str, ...]] = []
    end = -1
    for start, first in enumerate(names):
        last = max(i for i, name in enumerate(names) if ranks[name] - ranks[first] <= critical_difference)
        if last > max(start, end):
            groups.append(tuple(names[start : last + 1]))
            end = last
    return tuple(groups)


def wilcoxon_holm(scores: pd.DataFrame, against: str | None = None) -> tuple[PairTest, ...]:
    """Compare methods in pairs by two-sided signed-rank tests, corrected for their number (Holm).

    Args:
        scores: Larger is better: one row per case, one column per method.
        against: Compare only this method with each other one; by default all pairs.

    Returns:
        The tests, smallest p first.

    Raises:
        LongshiftError: There are fewer than two methods or cases, or a score is missing.
        UsageError: `against` is not one of the methods.

    Example:
        >>> import pandas as pd
        >>> scores = pd.DataFrame({"a": range(10, 20), "b": range(10)})
        >>> wilcoxon_holm(scores)[0].p < 0.01
        True
    """
    values = _checked(scores)
    names = [str(c) for c in scores.columns]
    if against is not None and against not in names:
        raise UsageError(f"expected `against` to be one of {', '.join(names)}, found {against!r}")
    found: list[tuple[str, str, float, float]] = []
    for i, j in combinations(range(len(names)), 2):
        if against is not None and against not in (names[i], names[j]):
            continue
        # Rounding makes differences of equal printed scores equal, so that they count as ties.
        difference = np.round(values[:, i] - values[:, j], 10)
        statistic, p = stats.wilcoxon(difference) if difference.any() else (0.0, 1.0)
        signed = np.sign(difference) * stats.rankdata(np.abs(difference))
        better, worse = (names[i], names[j]) if signed.sum() >= 0 else (names[j], names[i])
        found.append((better, worse, float(statistic), float(p)))
    corrected = holm(np.array([p for *_, p in found]))
    pairs = [PairTest(*row, float(c)) for row, c in zip(found, corrected, strict=True)]
    return tuple(sorted(pairs, key=lambda pair: pair.p))


def holm(p: FloatArray) -> FloatArray:
    """Apply Holm's step-down correction: max_{j <= i} min(1, (m - j + 1) p_(j)) for p sorted in ascending order."""
    order = np.argsort(p, kind="stable")
    scaled = np.minimum(1.0, p[order] * np.arange(len(p), 0, -1))
    result = np.empty(len(p))
    result[order] = np.maximum.accumulate(scaled)
    return result


def _enough(methods: int, cases: int) -> None:
    if methods < 2:
        raise LongshiftError(f"no test is possible: it compares at least 2 methods, found {methods}")
    if cases < 2:
        raise LongshiftError(f"no test is possible: it needs at least 2 cases, found {cases}")


def _checked(scores: pd.DataFrame) -> FloatArray:
    _enough(scores.shape[1], scores.shape[0])
    values = scores.to_numpy(dtype=np.float64)
    if np.isnan(values).any():
        gaps = [f"{scores.columns[j]} in {scores.index[i]}" for i, j in np.argwhere(np.isnan(values))[:5]]
        raise LongshiftError(
            f"no test is possible: {int(np.isnan(values).sum())} of {values.size} scores are missing "
            f"({'; '.join(gaps)}); finish those runs or leave the method or case out"
        )
    return _without_rounding_errors(values)


def _without_rounding_errors(values: FloatArray) -> FloatArray:
    """Round to twelve digits of the largest value: means of equal accuracies may differ in their last bits."""
    largest = float(np.abs(values).max())
    if largest == 0 or not math.isfinite(largest):
        return values
    result: FloatArray = np.round(values, 12 - math.ceil(math.log10(largest)))
    return result

"""Pearson's correlation of the quantities of the theory with target accuracy, as in the paper's table."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy import stats

from longshift.array_types import FloatArray
from longshift.errors import LongshiftError

LEAST = 3  # points that a correlation needs
DIGITS = 12  # values that differ in rounding errors alone do not vary


@dataclass(frozen=True)
class Correlation:
    """Pearson's r with two-sided p-value and 95% interval; NaN if one side does not vary."""

    r: float
    p: float
    low: float
    high: float
    n: int


def pearson(x: FloatArray, y: FloatArray, freedom: int | None = None) -> Correlation:
    """Compute r = cov(x, y) / (sd(x) sd(y)), with p from t = r sqrt(f / (1 - r^2)) and f degrees of freedom.

    The interval is Fisher's: tanh(atanh r +- 1.96 / sqrt(f - 1)); it is NaN for f < 2. By default f = n - 2.
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if x.shape != y.shape or x.ndim != 1:
        raise LongshiftError(f"expected as many values of the quantity as accuracies, found {x.shape} and {y.shape}")
    if len(x) < LEAST:
        raise LongshiftError(f"no correlation is possible: it needs at least {LEAST} runs, found {len(x)}")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise LongshiftError("no correlation is possible: a quantity or an accuracy is not a finite number")
    nan = float("nan")
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return Correlation(nan, nan, nan, nan, len(x))
    freedom = len(x) - 2 if freedom is None else freedom
    r = float(stats.pearsonr(x, y).statistic)
    with np.errstate(divide="ignore"):
        t = r * np.sqrt(freedom / np.float64(max(0.0, 1 - r * r)))
        half = float(stats.norm.ppf(0.975)) / np.sqrt(freedom - 1) if freedom > 1 else nan
        low, high = (float(np.tanh(np.arctanh(np.float64(r)) + sign * half)) for sign in (-1, 1))
    return Correlation(r, float(2 * stats.t.sf(abs(t), freedom)), low, high, len(x))


def correlate(quantities: pd.DataFrame, accuracy: pd.Series[float]) -> pd.DataFrame:
    """Correlate each column of `quantities` with `accuracy`, matched by index (one row per run)."""
    if set(quantities.index) != set(accuracy.index):
        raise LongshiftError(
            f"expected the same runs in both: {len(quantities)} have quantities, {len(accuracy)} accuracies, "
            f"{len(set(quantities.index) & set(accuracy.index))} both"
        )
    y = np.asarray(accuracy.loc[quantities.index], dtype=np.float64)
    found = [vars(pearson(np.asarray(quantities[c], dtype=np.float64), y)) for c in quantities.columns]
    names = {"r": "correlation", "p": "p_value"}
    return pd.DataFrame(found).rename(columns=names).assign(quantity=list(map(str, quantities.columns)))


@dataclass(frozen=True)
class Relation:
    """Pearson's and Spearman's coefficients of the same points; NaN where one side does not vary.

    Spearman's p is NaN where the interval of Pearson's r is: with three points, it cannot be below 1/3.
    """

    pearson: Correlation
    spearman: Correlation


def relate(x: FloatArray, y: FloatArray) -> Relation | None:
    """Both coefficients, with n - 2 degrees of freedom; None with fewer than three points."""
    return None if len(x) < LEAST else _relate(np.round(x, DIGITS), np.round(y, DIGITS), len(x) - 2)


def relate_within(x: FloatArray, y: FloatArray, cells: Sequence[Hashable]) -> tuple[Relation | None, int]:
    """Both coefficients after each cell's mean was taken off, and the number of cells.

    Every cell's mean costs a degree of freedom, n - cells - 1 are left: the slope's test in a regression with one
    intercept per cell. Cells with a single point carry no information and are left out.
    """
    points = pd.DataFrame({"x": x, "y": y, "cell": pd.factorize(pd.Series(list(cells), dtype=object))[0]})
    points = points[points.groupby("cell")["x"].transform("size") > 1]
    count = int(points["cell"].nunique())
    freedom = len(points) - count - 1
    if len(points) < LEAST or freedom < 1:
        return None, count
    centered = points[["x", "y"]] - points.groupby("cell")[["x", "y"]].transform("mean")
    values = np.round(centered.to_numpy(dtype=np.float64), DIGITS)
    return _relate(values[:, 0], values[:, 1], freedom), count


def _relate(x: FloatArray, y: FloatArray, freedom: int) -> Relation:
    ranked = pearson(stats.rankdata(x), stats.rankdata(y), freedom)
    # The t distribution is far off for few points: for rho = 1 it gives p = 0, but one of the n! orders of n points
    # agrees with the other side by chance, and one is its reverse, so that p is at least 2 / n!.
    least = 2 / math.factorial(min(ranked.n, 100))
    p = float("nan") if np.isnan(ranked.r) or freedom < 2 else max(ranked.p, least)
    return Relation(pearson(x, y, freedom), replace(ranked, p=p))

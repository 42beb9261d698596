"""How closely two quantities of runs go together: over all runs, and inside cells of runs that belong together."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy import stats

from longshift.analysis import Correlation, pearson
from longshift.metrics import FloatArray

LEAST = 3  # points that a correlation needs
DIGITS = 12  # values that differ in rounding errors alone do not vary


@dataclass(frozen=True)
class Relation:
    """Pearson's and Spearman's coefficients of the same points; NaN where one side does not vary."""

    pearson: Correlation
    spearman: Correlation


def relate(x: FloatArray, y: FloatArray) -> Relation | None:
    """Both coefficients, with n - 2 degrees of freedom; None with fewer than three points."""
    return None if len(x) < LEAST else _relate(np.round(x, DIGITS), np.round(y, DIGITS), len(x) - 2)


def relate_within(x: FloatArray, y: FloatArray, cells: Sequence[Hashable]) -> tuple[Relation | None, int]:
    """Both coefficients after each cell's mean was taken off, and the number of cells.

    Every cell's mean costs a degree of freedom, n - cells - 1 are left: the slope's test in a regression with one
    intercept a cell. Cells with a single point say nothing and are left out.
    """
    points = pd.DataFrame({"x": x, "y": y, "cell": pd.factorize(pd.Series(list(cells), dtype=object))[0]})
    points = points[points.groupby("cell")["x"].transform("size") > 1]
    count = int(points["cell"].nunique())
    freedom = len(points) - count - 1
    if len(points) < LEAST or freedom < 1:
        return None, count
    centred = points[["x", "y"]] - points.groupby("cell")[["x", "y"]].transform("mean")
    values = np.round(centred.to_numpy(dtype=np.float64), DIGITS)
    return _relate(values[:, 0], values[:, 1], freedom), count


def _relate(x: FloatArray, y: FloatArray, freedom: int) -> Relation:
    ranks = stats.rankdata(x), stats.rankdata(y)
    return Relation(with_freedom(pearson(x, y), freedom), with_freedom(pearson(*ranks), freedom))


def with_freedom(found: Correlation, freedom: int) -> Correlation:
    """The same coefficient with p and interval for `freedom` degrees of freedom (n - 2 without any cells).

    p: two-sided, from t = r sqrt(freedom / (1 - r^2)). Interval: tanh(atanh r +- 1.96 / sqrt(freedom - 1)).
    """
    r, nan = found.r, float("nan")
    if np.isnan(r):
        return found
    with np.errstate(divide="ignore"):
        t = r * np.sqrt(freedom / np.float64(max(0.0, 1 - r * r)))
        half = float(stats.norm.ppf(0.975)) / np.sqrt(freedom - 1) if freedom > 1 else nan
        low, high = (float(np.tanh(np.arctanh(np.float64(r)) + sign * half)) for sign in (-1, 1))
    return replace(found, p=float(2 * stats.t.sf(abs(t), freedom)), low=low, high=high)

"""The quantile of a kernel density estimate against SciPy's root finder and finite differences."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import example, given, settings, strategies as st
from scipy.optimize import brentq
from scipy.stats import norm
from torch import Tensor

from longshift.losses.quantile import kde_quantile

RISKS = [[0.3, 2.0], [2.3, 2.9, 1.7], [0.1, 0.1, 0.1, 5.0], [1.0, 1.5, 2.5, 0.2, 0.9]]


def exact(risks: npt.NDArray[np.float64], alpha: float) -> float:
    h = 1.06 * risks.std(ddof=1) * len(risks) ** -0.2
    reach = 10 * h
    return float(brentq(lambda x: norm.cdf((x - risks) / h).mean() - alpha, risks.min() - reach, risks.max() + reach))


@pytest.mark.parametrize("risks", RISKS)
@pytest.mark.parametrize("alpha", [0.05, 0.5, 0.75, 0.99])
@pytest.mark.parametrize("implicit", [False, True])
def test_value(risks: list[float], alpha: float, implicit: bool) -> None:
    values = torch.tensor(risks, dtype=torch.float64)
    assert float(kde_quantile(values, alpha, implicit)) == pytest.approx(exact(values.numpy(), alpha), abs=3e-9)


@pytest.mark.parametrize("alpha", [0.1, 0.75, 0.95])
@pytest.mark.parametrize("risks", [RISKS[1], RISKS[3]])
def test_implicit_gradient_is_the_derivative_of_the_quantile(risks: list[float], alpha: float) -> None:
    values = torch.tensor(risks, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(kde_quantile(values, alpha, implicit=True), values)
    step = 1e-4
    for index, slope in enumerate(gradient):
        change = np.zeros(len(risks))
        change[index] = step
        numeric = (exact(np.array(risks) + change, alpha) - exact(np.array(risks) - change, alpha)) / (2 * step)
        assert float(slope) == pytest.approx(numeric, abs=1e-6)


def published_gradient(values: Tensor, alpha: float) -> Tensor:
    """The bisection written as published, differentiated through its own steps."""
    n = len(values)
    h = 1.06 * values.std() * n**-0.2
    z = float(norm.ppf(alpha))
    ends = [values.min() + h * z, values.max() + h * z]
    middle = 0.5 * (ends[0] + ends[1])
    for _ in range(32):
        above = float(torch.special.ndtr((middle - values) / h).mean().detach()) > alpha
        ends[int(above)] = middle
        middle = 0.5 * (ends[0] + ends[1])
    (gradient,) = torch.autograd.grad(middle, values)
    return gradient


@pytest.mark.parametrize("risks", RISKS)
@pytest.mark.parametrize("alpha", [0.3, 0.75, 0.95])
def test_published_gradient(risks: list[float], alpha: float) -> None:
    values = torch.tensor(risks, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(kde_quantile(values, alpha), values)
    torch.testing.assert_close(gradient, published_gradient(values, alpha), rtol=0, atol=1e-8)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("implicit", [False, True])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_equal_risks_give_that_risk_and_a_finite_gradient(dtype: torch.dtype, implicit: bool, n: int) -> None:
    values = torch.full((n,), 1.25, dtype=dtype, requires_grad=True)
    quantile = kde_quantile(values, 0.75, implicit)
    (gradient,) = torch.autograd.grad(quantile, values)
    assert float(quantile.detach()) == 1.25
    assert float(gradient.sum()) == pytest.approx(1.0)


@settings(deadline=None, max_examples=60)
@example([20.0, 19.999999999999996], 0.25, False, 0.0)
@example([20.0, 19.999999999999996, 20.0], 0.9, True, 1.0)
@given(st.lists(st.floats(0, 20), min_size=2, max_size=6), st.floats(0.01, 0.99), st.booleans(), st.floats(-5, 5))
def test_shifting_all_risks_shifts_the_quantile(risks: list[float], alpha: float, implicit: bool, shift: float) -> None:
    values = torch.tensor(risks, dtype=torch.float64, requires_grad=True)
    quantile = kde_quantile(values, alpha, implicit)
    (gradient,) = torch.autograd.grad(quantile, values)
    assert float(gradient.sum()) == pytest.approx(1.0, abs=1e-6)
    moved = kde_quantile(values.detach() + shift, alpha, implicit)
    assert float(moved) == pytest.approx(float(quantile.detach()) + shift, abs=1e-6)

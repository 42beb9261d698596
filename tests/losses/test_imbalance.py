"""Losses for class imbalance against their formulas, and what a count of 0 means."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn.functional import cross_entropy

from longshift.losses.imbalance import focal_loss, inverse_frequency, ldam_margins, log_prior, margin_loss

LOGITS = torch.tensor([[2.0, -1.0, 0.5], [0.0, 0.0, 3.0]], dtype=torch.float64)
Y = torch.tensor([0, 1])


@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0, 2.3])
def test_focal(gamma: float) -> None:
    for value, row, label in zip(focal_loss(LOGITS, Y, gamma), LOGITS, Y, strict=True):
        p = float(row.softmax(0)[label])
        assert float(value) == pytest.approx((1 - p) ** gamma * -math.log(p), abs=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_focal_gradient_of_a_certain_sample_is_zero(dtype: torch.dtype) -> None:
    logits = torch.tensor([[1000.0, 0.0]], dtype=dtype, requires_grad=True)
    loss = focal_loss(logits, torch.tensor([0]), 0.5).sum()
    (gradient,) = torch.autograd.grad(loss, logits)
    assert float(loss.detach()) == 0
    assert gradient.tolist() == [[0.0, 0.0]]


def test_inverse_frequency_is_scaled_to_the_number_of_classes() -> None:
    weights = inverse_frequency(torch.tensor([[10.0, 5.0, 1.0], [0.0, 2.0, 1.0]]))
    torch.testing.assert_close(weights.sum(1), torch.full((2,), 3.0))
    assert float(weights[0, 2] / weights[0, 0]) == pytest.approx(10)
    assert float(weights[1, 0]) == float(weights[1, 2])  # a missing class is counted as one sample


def test_log_prior_takes_a_missing_class_out_of_the_softmax() -> None:
    shifted = LOGITS + log_prior(torch.tensor([7.0, 0.0, 3.0], dtype=torch.float64))
    with_two = LOGITS[:1, [0, 2]] + torch.tensor([7.0, 3.0], dtype=torch.float64).log()
    expected = cross_entropy(with_two, torch.tensor([0]))
    assert float(cross_entropy(shifted[:1], Y[:1])) == pytest.approx(float(expected), abs=1e-15)
    assert 50 < float(cross_entropy(shifted[1:], Y[1:])) < 100  # a sample of it: dear, not infinite


def test_ldam_margins() -> None:
    margins = ldam_margins(torch.tensor([[16.0, 81.0, 1.0], [16.0, 0.0, 81.0], [0.0, 0.0, 0.0]]), 0.6)
    torch.testing.assert_close(
        margins, torch.tensor([[0.3, 0.2, 0.6], [0.6, 0.6, 0.4], [0.6, 0.6, 0.6]])
    )  # 16^-1/4 = 1/2, 81^-1/4 = 1/3; a missing class leaves the others alone


def test_margin_loss() -> None:
    values = margin_loss(LOGITS, Y, torch.tensor([0.5, 0.1], dtype=torch.float64), 10.0)
    expected = torch.stack(
        [
            cross_entropy(10 * torch.tensor([1.5, -1.0, 0.5], dtype=torch.float64), Y[0]),
            cross_entropy(10 * torch.tensor([0.0, -0.1, 3.0], dtype=torch.float64), Y[1]),
        ]
    )
    torch.testing.assert_close(values, expected)

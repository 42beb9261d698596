"""Losses for class imbalance: functions and modules."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, one_hot

from longshift.losses import BalancedSoftmaxLoss, FocalLoss, InverseFrequencyCE, LDAMLoss
from longshift.losses.imbalance import (
    CountLoss,
    focal_loss,
    inverse_frequency,
    ldam_margins,
    log_prior,
    margin_loss,
    maximum_square_loss,
)

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


COUNTS = [[90, 9, 1], [1, 30, 69]]


def batch(dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(11, 3, generator=generator, dtype=torch.float64).to(dtype)
    return logits, torch.tensor([0, 1, 2, 2, 1, 0, 0, 1, 2, 0, 1]), torch.tensor([1, 0, 0, 1, 1, 0, 1, 1, 1, 0, 0])


def test_balanced_softmax_per_domain_and_global() -> None:
    logits, y, d = batch()
    counts = torch.tensor(COUNTS, dtype=torch.float64)
    shares = counts[d] * logits.exp()
    expected = -(shares[range(11), y] / shares.sum(1)).log()
    torch.testing.assert_close(BalancedSoftmaxLoss(COUNTS)(logits, y, d), expected.mean())
    torch.testing.assert_close(BalancedSoftmaxLoss(COUNTS, reduction="none")(logits, y, d), expected)
    torch.testing.assert_close(BalancedSoftmaxLoss(COUNTS, reduction="sum")(logits, y, d), expected.sum())
    pooled = BalancedSoftmaxLoss(counts.sum(0))
    torch.testing.assert_close(pooled(logits, y), cross_entropy(logits + counts.sum(0).log(), y))
    torch.testing.assert_close(pooled(logits, y, d), pooled(logits, y))


def test_ldam_margins_per_domain_and_global() -> None:
    logits, y, d = batch()
    counts = torch.tensor(COUNTS, dtype=torch.float64)
    margins = counts**-0.25 / (counts**-0.25).amax(1, keepdim=True) * 0.7
    lowered = logits - margins[d, y][:, None] * one_hot(y, 3)
    criterion = LDAMLoss(COUNTS, max_margin=0.7, scale=5.0)
    torch.testing.assert_close(criterion(logits, y, d), cross_entropy(5 * lowered, y))
    lowered = logits - margins[0, y][:, None] * one_hot(y, 3)
    criterion = LDAMLoss(COUNTS[0], max_margin=0.7, scale=5.0)
    torch.testing.assert_close(criterion(logits, y), cross_entropy(5 * lowered, y))


def test_inverse_frequency_is_the_weighted_loss_of_pytorch_in_each_domain() -> None:
    logits, y, d = batch()
    weights = 1 / torch.tensor(COUNTS, dtype=torch.float64)
    each = [cross_entropy(logits[d == k], y[d == k], weight=weights[k]) for k in range(2)]
    torch.testing.assert_close(InverseFrequencyCE(COUNTS)(logits, y, d), torch.stack(each).mean())
    torch.testing.assert_close(InverseFrequencyCE(COUNTS[0])(logits, y), cross_entropy(logits, y, weight=weights[0]))
    only = InverseFrequencyCE([*COUNTS, [5, 5, 5]])  # a domain that the batch lacks
    torch.testing.assert_close(only(logits, y, d), torch.stack(each).mean())


@pytest.mark.parametrize("criterion", [BalancedSoftmaxLoss(COUNTS), LDAMLoss(COUNTS), InverseFrequencyCE(COUNTS)])
def test_counts_are_exact_in_any_precision_and_not_saved(criterion: nn.Module) -> None:
    logits, y, d = batch()
    exact = criterion(logits, y, d)
    assert exact.dtype == torch.float64
    assert criterion(logits.bfloat16(), y, d).dtype == torch.float32
    torch.testing.assert_close(criterion.float()(logits, y, d), exact, rtol=0, atol=0)
    assert not criterion.state_dict()
    assert not list(criterion.parameters())


@pytest.mark.parametrize("cls", [BalancedSoftmaxLoss, LDAMLoss, InverseFrequencyCE])
def test_whole_counts_stay_exact_in_a_module_of_lower_precision(cls: type[CountLoss]) -> None:
    logits, y, _ = batch()
    counts = [1001, 257, 4099]  # none of them is a number of bfloat16
    given = cls(torch.tensor(counts, dtype=torch.float32)).bfloat16()
    torch.testing.assert_close(given(logits, y), cls(counts)(logits, y), rtol=0, atol=0)
    shares = cls(torch.tensor([0.5, 0.2, 0.3]))  # not whole: kept as they are
    assert shares.class_counts.is_floating_point()


def test_errors_name_what_was_expected() -> None:
    logits, y, _ = batch()
    with pytest.raises(ValueError, match="`d`"):
        BalancedSoftmaxLoss(COUNTS)(logits, y)
    with pytest.raises(ValueError, match=r"\(B, 2\)"):
        LDAMLoss([3, 4])(logits, y)
    with pytest.raises(ValueError, match="`class_counts`"):
        BalancedSoftmaxLoss(torch.ones(2, 2, 2))
    with pytest.raises(ValueError, match="`class_counts`"):
        InverseFrequencyCE([3, -1])
    with pytest.raises(ValueError, match="`reduction`"):
        FocalLoss(reduction="avg")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="`gamma`"):
        FocalLoss(-1)


@settings(deadline=None)
@given(rows=st.integers(1, 6), classes=st.integers(2, 7), seed=st.integers(0, 1000))
def test_value_and_gradient_have_their_closed_forms(rows: int, classes: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(rows, classes, generator=generator, dtype=torch.float64, requires_grad=True)
    loss = maximum_square_loss(logits)
    p = logits.detach().softmax(1)
    assert abs(loss.item() + sum(float(v) ** 2 for v in p.flatten()) / (2 * rows)) < 1e-14
    # d loss / d p = -p / n, through the softmax: -p_k (p_k - sum_j p_j^2) / n.
    expected = -p * (p - p.square().sum(1, keepdim=True)) / rows
    (grad,) = torch.autograd.grad(loss, [logits])
    torch.testing.assert_close(grad, expected, rtol=0, atol=1e-14)


def test_half_precision_is_computed_in_single() -> None:
    logits = torch.tensor([[4.0, -1.0], [0.5, 0.25]], dtype=torch.bfloat16)
    assert maximum_square_loss(logits).dtype == torch.float32
    assert torch.equal(maximum_square_loss(logits), maximum_square_loss(logits.float()))

"""The maximum square loss against its closed forms."""

import torch
from hypothesis import given, settings, strategies as st

from longshift.losses.maximum_square import maximum_square_loss


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

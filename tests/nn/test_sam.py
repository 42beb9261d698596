"""Sharpness-aware gradients against a quadratic solved by hand."""

import torch
from torch import nn

from longshift.nn.parameters import gradients
from longshift.nn.sam import sharpest_shift, sharpness_aware_gradients


def test_gradient_on_a_quadratic_is_the_one_found_by_hand() -> None:
    # f(a, b) = a^2 + 2 b^2 at (3/2, 1): gradient (3, 4) of length 5. With rho = 1/2 the point is moved by (0.3, 0.4)
    # to (1.8, 1.4), where the gradient is (3.6, 5.6) and f = 3.24 + 3.92.
    a, b = (nn.Parameter(torch.tensor([v], dtype=torch.float64)) for v in (1.5, 1.0))

    def loss() -> torch.Tensor:
        return (a.square() + 2 * b.square()).sum()

    up = gradients(loss(), [a, b])
    value, down = sharpness_aware_gradients(loss, [a, b], up, rho=0.5)
    torch.testing.assert_close(torch.cat(down), torch.tensor([3.6, 5.6], dtype=torch.float64), rtol=0, atol=1e-14)
    assert abs(value.item() - 7.16) < 1e-14
    assert (a.item(), b.item()) == (1.5, 1.0)


def test_shift_has_the_length_rho_over_all_weights_together() -> None:
    grads = [torch.tensor([[3.0, 0.0]]), torch.tensor([4.0])]
    shift = sharpest_shift(grads, 0.1)
    torch.testing.assert_close(torch.cat([s.flatten() for s in shift]), torch.tensor([0.06, 0.0, 0.08]))


def test_zero_gradient_gives_no_shift() -> None:
    (shift,) = sharpest_shift([torch.zeros(3)], 0.1)
    assert torch.equal(shift, torch.zeros(3))

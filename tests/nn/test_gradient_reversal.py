"""Gradient reversal: identity forward, negated and scaled gradient backward."""

import pytest
import torch

from longshift.nn.gradient_reversal import reverse_gradient


@pytest.mark.parametrize("strength", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("as_tensor", [False, True])
def test_identity_forward_and_reversed_backward(strength: float, as_tensor: bool) -> None:
    x = torch.tensor([1.0, -2.0], requires_grad=True)
    out = reverse_gradient(x, torch.tensor(strength) if as_tensor else strength)
    assert torch.equal(out, x)
    (grad,) = torch.autograd.grad((out * torch.tensor([5.0, 7.0])).sum(), [x])
    torch.testing.assert_close(grad, -strength * torch.tensor([5.0, 7.0]))


def test_the_input_itself_keeps_its_gradient() -> None:
    x = torch.tensor([2.0], requires_grad=True)
    hidden = x * 3
    loss = reverse_gradient(hidden, 0.5).sum() + hidden.sum()
    (grad,) = torch.autograd.grad(loss, [x])
    assert grad.item() == 3.0 - 0.5 * 3.0


def test_without_gradient_nothing_happens() -> None:
    x = torch.ones(2)
    assert reverse_gradient(x, 1.0) is x

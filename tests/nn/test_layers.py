"""Small networks and layers."""

from __future__ import annotations

import pytest
import torch
from sklearn.preprocessing import StandardScaler
from torch import nn

from longshift.nn.layers import MLP, VectorMLP, reverse_gradient


def test_layers_with_relu_between_and_none_at_the_end() -> None:
    torch.manual_seed(0)
    model = MLP([3, 5, 4, 2])
    a, b, c = model.layers
    x = torch.randn(7, 3)
    plain = nn.Sequential(a, nn.ReLU(), b, nn.ReLU(), c)
    torch.testing.assert_close(model(x), plain(x))


def test_dropout_only_while_training() -> None:
    torch.manual_seed(0)
    model = MLP([3, 50, 2], dropout=0.5)
    x = torch.randn(7, 3)
    assert not torch.equal(model(x), model(x))
    model.eval()
    assert torch.equal(model(x), model(x))


def test_columns_are_standardized_as_by_scikit_learn() -> None:
    x = torch.randn(50, 4, generator=torch.Generator().manual_seed(0)) * torch.tensor([1.0, 100.0, 1e-3, 0.0])
    x += torch.tensor([0.0, 1e4, 5.0, 7.0])  # the last column never changes
    net = VectorMLP(4)
    net.fit_inputs(x)
    expected = torch.tensor(StandardScaler().fit_transform(x.double().numpy())).float()
    torch.testing.assert_close(net[0](x), expected, atol=2e-3, rtol=1e-3)
    assert net[0](x)[:, 3].abs().max() == 0


def test_the_scale_travels_with_the_weights() -> None:
    net, other = VectorMLP(3), VectorMLP(3)
    net.fit_inputs(torch.rand(9, 3) * 5)
    other.load_state_dict(net.state_dict())
    x = torch.rand(2, 3)
    assert torch.equal(net(x), other(x))


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

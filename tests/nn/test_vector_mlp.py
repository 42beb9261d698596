"""The network for vectors standardizes columns as scikit-learn does."""

from __future__ import annotations

import torch
from sklearn.preprocessing import StandardScaler

from longshift.nn.vector_mlp import VectorMLP


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

"""The multi-layer perceptron: layers, dropout, and errors for bad sizes."""

import pytest
import torch
from torch import nn

from longshift.nn.mlp import MLP


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


def test_bad_sizes_are_named() -> None:
    with pytest.raises(ValueError, match=r"two or more positive numbers, but got \[3\]"):
        MLP([3])

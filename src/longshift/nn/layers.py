"""Small networks and layers: an MLP, gradient reversal, the network for small images, heads for vectors."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn


class MLP(nn.Module):
    """Linear layers of the given sizes, with dropout and ReLU between them: `MLP([2048, 256, 256, 3])`."""

    def __init__(self, sizes: Sequence[int], dropout: float = 0.0) -> None:
        super().__init__()
        if len(sizes) < 2 or min(sizes) < 1:
            raise ValueError(f"Expected `sizes` to be two or more positive numbers, but got {list(sizes)}.")
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(sizes))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, first size) to (B, last size)."""
        for layer in self.layers[:-1]:
            x = self.dropout(layer(x)).relu()
        out: Tensor = self.layers[-1](x)
        return out


def reverse_gradient(x: Tensor, strength: Tensor | float = 1.0) -> Tensor:
    """Return `x`; its gradient is multiplied by -`strength`."""
    if not x.requires_grad:
        return x
    out = x.view_as(x)
    out.register_hook(lambda grad: grad * -strength)
    return out


SIZES = (3, 16, 32, 64, 64)  # channels


def small_conv() -> tuple[nn.Module, int]:
    """Build four 3x3 convolutions with group norm; return the module and its feature length.

    Group norm has no running statistics, so the result does not depend on how batches mix the domains.
    """
    layers: list[nn.Module] = []
    for index, (before, after) in enumerate(itertools.pairwise(SIZES)):
        stride = 2 if index in (0, 1, 2) else 1
        layers += [
            nn.Conv2d(before, after, 3, stride=stride, padding=1),
            nn.GroupNorm(8, after),
            nn.ReLU(),
        ]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten()), SIZES[-1]


HIDDEN = 256


class Standardize(nn.Module):
    """(x - mean) / std per column; mean and std are buffers, so that they are saved with the weights."""

    mean: Tensor
    std: Tensor

    def __init__(self, columns: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(columns))
        self.register_buffer("std", torch.ones(columns))

    @torch.no_grad()
    def fit(self, x: Tensor) -> None:
        """Compute mean and standard deviation of the rows of x; a constant column is only centered."""
        # In double precision, so that a large common offset does not cancel the digits of the spread.
        mean = x.double().mean(0)
        std = (x.double() - mean).square().mean(0).sqrt()
        self.mean.copy_(mean)
        self.std.copy_(torch.where(std > 1e-6 * mean.abs().clamp_min(1e-6), std, torch.ones_like(std)))

    def forward(self, x: Tensor) -> Tensor:
        """Standardize the columns."""
        return (x - self.mean) / self.std


class VectorHead(nn.Sequential):
    """Standardization, then other layers."""

    def fit_inputs(self, x: Tensor) -> None:
        """Learn the scale of the inputs from the training vectors."""
        first = self[0]
        assert isinstance(first, Standardize)
        first.fit(x)


class VectorMLP(VectorHead):
    """Standardization, linear layer, ReLU."""

    def __init__(self, columns: int, hidden: int = HIDDEN) -> None:
        super().__init__(Standardize(columns), nn.Linear(columns, hidden), nn.ReLU())


class VectorLinear(VectorHead):
    """Standardization only: the classifier on top of it is linear in the vectors."""

    def __init__(self, columns: int) -> None:
        super().__init__(Standardize(columns))

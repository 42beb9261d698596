"""The networks for vectors (embeddings, features): standardized columns, with or without one hidden layer."""

from __future__ import annotations

import torch
from torch import Tensor, nn

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

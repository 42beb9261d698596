"""Small multi-layer perceptrons: the discriminators of the adversarial methods."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

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

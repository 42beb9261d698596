"""The information about the task that a method can use."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Problem:
    """Number of classes and source domains, training counts, and number of steps."""

    classes: int
    domains: int
    counts: tuple[tuple[int, ...], ...]  # [domain][class] training samples; a class may be missing (0)
    steps: int = 5000

    def __post_init__(self) -> None:
        if len(self.counts) != self.domains or any(len(row) != self.classes for row in self.counts):
            shape = f"{len(self.counts)} x {len(self.counts[0]) if self.counts else 0}"
            raise ValueError(f"Expected `counts` of {self.domains} domains x {self.classes} classes, but got {shape}.")

    def counts_tensor(self, dtype: torch.dtype | None = None) -> Tensor:
        """Return the training counts (domains, classes) on the CPU; register them as a buffer of the method."""
        return torch.tensor(self.counts, dtype=dtype or torch.get_default_dtype())

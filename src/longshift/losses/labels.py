"""One-hot labels without the range check of torch's one_hot, which reads the labels on the host."""

from __future__ import annotations

import torch
from torch import Tensor


def indicator(y: Tensor, classes: int, dtype: torch.dtype) -> Tensor:
    """Return 1 at the label and 0 elsewhere, (...) -> (..., classes)."""
    return (y.unsqueeze(-1) == torch.arange(classes, device=y.device)).to(dtype)

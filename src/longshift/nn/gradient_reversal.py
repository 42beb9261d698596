"""Gradient reversal (Ganin and Lempitsky 2015): the identity forward, minus `strength` times the gradient backward."""

from __future__ import annotations

from torch import Tensor


def reverse_gradient(x: Tensor, strength: Tensor | float = 1.0) -> Tensor:
    """Return `x`; its gradient is multiplied by -`strength`."""
    if not x.requires_grad:
        return x
    out = x.view_as(x)
    out.register_hook(lambda grad: grad * -strength)
    return out

"""Sharpness-aware minimization (SAM): the gradient at the worst nearby point (Foret et al., ICLR 2021)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from longshift.nn.parameters import gradients, shifted_weights


@torch.no_grad()
def sharpest_shift(grads: Sequence[Tensor], rho: float) -> list[Tensor]:
    """Return the step of length `rho` along which a loss with these gradients increases fastest."""
    norms = torch._foreach_norm(list(grads))
    length = torch.linalg.vector_norm(torch.stack(list(norms)))
    return list(torch._foreach_mul(list(grads), rho / length.clamp_min(1e-12)))


def sharpness_aware_gradients(
    loss: Callable[[], Tensor], weights: Sequence[Tensor], grads: Sequence[Tensor], rho: float
) -> tuple[Tensor, list[Tensor]]:
    """Compute the loss and its gradients after the sharpest shift, and restore the weights.

    `grads` are the gradients of the first pass, at the unshifted weights.
    """
    with shifted_weights(weights, sharpest_shift(grads, rho)):
        value = loss()
        return value.detach(), gradients(value, weights)

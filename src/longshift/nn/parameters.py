"""Weights and gradients as lists, changed and restored in place, so that captured CUDA graphs stay valid."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn


def trainable(*modules: nn.Module) -> list[nn.Parameter]:
    """Return the trainable parameters of the modules, in order."""
    return [p for module in modules for p in module.parameters() if p.requires_grad]


def gradients(loss: Tensor, weights: Sequence[Tensor], retain_graph: bool = False) -> list[Tensor]:
    """Compute the gradients of a loss; zero for weights that it does not depend on."""
    return list(torch.autograd.grad(loss, weights, retain_graph=retain_graph, materialize_grads=True))


def set_gradients(weights: Sequence[nn.Parameter], values: Sequence[Tensor]) -> None:
    """Set the gradients for an optimizer."""
    for weight, value in zip(weights, values, strict=True):
        weight.grad = value


@torch.no_grad()
def copy_tensors(weights: Sequence[Tensor]) -> list[Tensor]:
    """Copy the weights."""
    return [w.detach().clone() for w in weights]


@torch.no_grad()
def flatten_tensors(values: Sequence[Tensor]) -> Tensor:
    """Concatenate all values into one vector."""
    return torch.cat([v.reshape(-1) for v in values])


def unflatten_tensors(vector: Tensor, like: Sequence[Tensor]) -> list[Tensor]:
    """Invert `flatten_tensors`: return views of the vector in the shapes of `like`."""
    parts = vector.split([w.numel() for w in like])
    return [part.view(w.shape) for part, w in zip(parts, like, strict=True)]


@torch.no_grad()
def assign_tensors(weights: Sequence[Tensor], values: Sequence[Tensor]) -> None:
    """Overwrite the weights."""
    torch._foreach_copy_(list(weights), list(values))


@contextmanager
def shifted_weights(weights: Sequence[Tensor], by: Sequence[Tensor]) -> Iterator[None]:
    """Shift the weights inside the context, and restore them exactly after it."""
    kept = copy_tensors(weights)
    with torch.no_grad():
        torch._foreach_add_(list(weights), list(by))
    try:
        yield
    finally:
        assign_tensors(weights, kept)


@torch.no_grad()
def first_adam_step(
    weights: Sequence[Tensor], grads: Sequence[Tensor], lr: float, weight_decay: float = 0.0, eps: float = 1e-8
) -> list[Tensor]:
    """Compute the change of the weights in the first step of a new Adam optimizer.

    After bias correction, the moments of the first step are g and g^2, whatever the betas. The step is
    -lr g / (|g| + eps), with weight decay included in g.
    """
    decayed = list(torch._foreach_add(list(grads), list(weights), alpha=weight_decay)) if weight_decay else list(grads)
    scale = torch._foreach_abs(decayed)
    torch._foreach_add_(scale, eps)
    step = torch._foreach_div(decayed, scale)
    torch._foreach_mul_(step, -lr)
    return list(step)

"""Optimizers, gradients of lists of parameters, and sharpness-aware minimization."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn


def adam(
    parameters: Iterable[nn.Parameter],
    lr: float,
    weight_decay: float = 0.0,
    betas: tuple[float, float] = (0.9, 0.999),
) -> torch.optim.Adam:
    """Create Adam with L2 weight decay; on CUDA it is fused and capturable, with the learning rate in a tensor."""
    parameters = list(parameters)
    if parameters and parameters[0].is_cuda:
        rate = torch.tensor(lr, device=parameters[0].device, dtype=torch.float32)
        return torch.optim.Adam(
            parameters, lr=rate, betas=betas, weight_decay=weight_decay, fused=True, capturable=True
        )
    return torch.optim.Adam(parameters, lr=lr, betas=betas, weight_decay=weight_decay)


def set_lr(optimizer: torch.optim.Optimizer, lr: float) -> None:
    """Change the learning rate of all groups, in place if it is a tensor."""
    for group in optimizer.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(lr)
        else:
            group["lr"] = lr


def reset(optimizer: torch.optim.Optimizer, lr: float | None = None) -> None:
    """Set moments and step counts to zero, and optionally change the learning rate."""
    for state in optimizer.state.values():
        for value in state.values():
            if isinstance(value, Tensor):
                value.zero_()
    if lr is not None:
        set_lr(optimizer, lr)


def load_state(optimizer: torch.optim.Optimizer, state: dict[str, Any]) -> None:
    """Load a saved state, also from another device.

    The implementation of this optimizer (fused, capturable, learning rate in a tensor) does not change. Plain
    `load_state_dict` would load that too, and would share tensors with the saved state.
    """
    own = [dict(group) for group in optimizer.param_groups]
    optimizer.load_state_dict(state)
    for group, before in zip(optimizer.param_groups, own, strict=True):
        rate = group["lr"]
        group.update({key: before[key] for key in ("fused", "capturable", "foreach", "lr") if key in before})
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = float(rate)
        on_device = group.get("fused") or group.get("capturable")
        for parameter in group["params"]:
            kept = optimizer.state.get(parameter, {})
            for key, value in kept.items():
                if isinstance(value, Tensor):
                    where = parameter.device if key != "step" or on_device else torch.device("cpu")
                    kept[key] = value.clone().to(where)


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
    weights: Sequence[Tensor], grads: Sequence[Tensor], lr: float, weight_decay: float = 0.0
) -> list[Tensor]:
    """Compute the change of the weights in the first step of a new Adam optimizer.

    After bias correction, the moments of the first step are g and g^2, whatever the betas. The step is
    -lr g / (|g| + 1e-8), with weight decay included in g.
    """
    decayed = list(torch._foreach_add(list(grads), list(weights), alpha=weight_decay)) if weight_decay else list(grads)
    scale = torch._foreach_abs(decayed)
    torch._foreach_add_(scale, 1e-8)
    step = torch._foreach_div(decayed, scale)
    torch._foreach_mul_(step, -lr)
    return list(step)


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

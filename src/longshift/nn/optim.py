"""Adam as every method uses it, and its reset in place (so that captured CUDA graphs stay valid)."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn


def adam(
    parameters: Iterable[nn.Parameter],
    lr: float,
    weight_decay: float = 0.0,
    betas: tuple[float, float] = (0.9, 0.999),
) -> torch.optim.Adam:
    """Adam with L2 weight decay; on CUDA fused and capturable, with the learning rate in a tensor."""
    parameters = list(parameters)
    if parameters and parameters[0].is_cuda:
        rate = torch.tensor(lr, device=parameters[0].device, dtype=torch.float32)
        return torch.optim.Adam(
            parameters, lr=rate, betas=betas, weight_decay=weight_decay, fused=True, capturable=True
        )
    return torch.optim.Adam(parameters, lr=lr, betas=betas, weight_decay=weight_decay)


def set_lr(optimizer: torch.optim.Optimizer, lr: float) -> None:
    """Change the learning rate of all groups, in place where it lives in a tensor."""
    for group in optimizer.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(lr)
        else:
            group["lr"] = lr


def reset(optimizer: torch.optim.Optimizer, lr: float | None = None) -> None:
    """Make the optimizer fresh: zero moments and step counts, and optionally another learning rate."""
    for state in optimizer.state.values():
        for value in state.values():
            if isinstance(value, Tensor):
                value.zero_()
    if lr is not None:
        set_lr(optimizer, lr)

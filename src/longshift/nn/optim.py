"""Adam as all methods use it. It is reset in place, so that captured CUDA graphs stay valid."""

from __future__ import annotations

from collections.abc import Iterable
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

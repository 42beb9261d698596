"""Full precision for losses, also for half-precision inputs and inside autocast."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import torch
from torch import Tensor

P = ParamSpec("P")
R = TypeVar("R")


def upcast(value: Any) -> Any:
    """Convert float16 and bfloat16 tensors to float32; return anything else unchanged."""
    if isinstance(value, Tensor) and value.dtype in (torch.float16, torch.bfloat16):
        return value.float()
    return value


def full_precision(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function: half-precision tensor arguments become float32, and autocast is off inside."""

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        arguments: Any = tuple(upcast(value) for value in args)
        options: Any = {name: upcast(value) for name, value in kwargs.items()}
        devices = [value.device.type for value in (*arguments, *options.values()) if isinstance(value, Tensor)]
        device = devices[0] if devices else "cpu"
        # Of the devices without autocast, only that of meta tensors occurs. `torch.amp.is_autocast_available` would
        # cover the others, too, but PyTorch 2.11 cannot compile a call to it: it warns and splits the function.
        if device != "meta" and torch.is_autocast_enabled(device):
            with torch.autocast(device, enabled=False):
                return function(*arguments, **options)
        return function(*arguments, **options)

    return wrapper


def floor_of(dtype: torch.dtype) -> float:
    """Return machine epsilon: smaller cosine distances are rounding noise, so logarithms are clamped there."""
    return torch.finfo(dtype).eps

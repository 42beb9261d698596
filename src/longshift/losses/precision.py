"""Losses compute in full precision, whatever comes in and whatever autocast region they are called from."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import torch
from torch import Tensor

P = ParamSpec("P")
R = TypeVar("R")


def upcast(value: Any) -> Any:
    """float16 and bfloat16 tensors as float32; anything else as it is."""
    if isinstance(value, Tensor) and value.dtype in (torch.float16, torch.bfloat16):
        return value.float()
    return value


def full_precision(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator: half-precision tensor arguments become float32, and autocast is off inside."""

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        arguments: Any = tuple(upcast(value) for value in args)
        options: Any = {name: upcast(value) for name, value in kwargs.items()}
        device = next((value.device.type for value in arguments if isinstance(value, Tensor)), "cpu")
        if torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device):
            with torch.autocast(device, enabled=False):
                return function(*arguments, **options)
        return function(*arguments, **options)

    return wrapper


def floor_of(dtype: torch.dtype) -> float:
    """Machine epsilon: a cosine distance below it is rounding noise, so that logarithms stop there."""
    return torch.finfo(dtype).eps

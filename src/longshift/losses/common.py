"""What losses share: full precision inside autocast, checks of options, one-hot labels, samples grouped by domain."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
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


def check(name: str, value: str, choices: Sequence[str]) -> None:
    """Raise ValueError unless the value is one of the choices."""
    if value not in choices:
        raise ValueError(f"Expected `{name}` to be one of {', '.join(choices)}, but got {value!r}.")


def indicator(y: Tensor, classes: int, dtype: torch.dtype) -> Tensor:
    """Return 1 at the label and 0 elsewhere, (...) -> (..., classes)."""
    return (y.unsqueeze(-1) == torch.arange(classes, device=y.device)).to(dtype)


def membership(d: Tensor, domains: int) -> Tensor:
    """Return a mask (domains, B) of the samples of each domain; d (B,) are int64 indices below `domains`."""
    return d == torch.arange(domains, device=d.device)[:, None]


def domain_means(values: Tensor, member: Tensor) -> Tensor:
    """Compute the mean of values (B,) in each domain, (domains,); 0 for a domain without samples."""
    return (values * member).sum(1) / member.sum(1).clamp_min(1)


def mean_of_present(values: Tensor, present: Tensor) -> Tensor:
    """Compute the mean over the rows of values (domains,) or (domains, M) that `present` (domains,) marks."""
    shape = (-1, *(1,) * (values.dim() - 1))
    return (values * present.view(shape)).sum(0) / present.sum().clamp_min(1)


def weighted_domain_mean(losses: Tensor, weights: Tensor, member: Tensor) -> Tensor:
    """Compute the mean over domains of the weighted mean of losses (B,); absent domains are left out."""
    total = (weights * member).sum(1)
    present = total > 0
    means = (losses * weights * member).sum(1) / torch.where(present, total, 1)
    return mean_of_present(means, present)


def squared_gaps(inner: Tensor) -> Tensor:
    """Turn inner products (domains, domains) into squared distances, |a|^2 + |b|^2 - 2 <a, b>."""
    own = inner.diagonal()
    return own[:, None] + own[None, :] - 2 * inner


def mean_over_pairs(table: Tensor, present: Tensor) -> Tensor:
    """Compute the mean of a symmetric table (domains, domains) over pairs of present domains; 0 if there is no pair."""
    count = present.sum()
    pairs = (present[:, None] & present[None, :]).tril(-1)
    return (table * pairs).sum() / (count * (count - 1) / 2).clamp_min(1).to(table.dtype)

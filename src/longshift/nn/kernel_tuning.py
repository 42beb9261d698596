"""Temporary choice of cuDNN kernels."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def without_kernel_tuning(exact: bool = False) -> Iterator[None]:
    """Use cuDNN's first choice instead of timing all kernels for each new shape; `exact` also disables TF32."""
    cudnn = torch.backends.cudnn
    before = cudnn.benchmark, cudnn.allow_tf32
    cudnn.benchmark = False
    cudnn.allow_tf32 = cudnn.allow_tf32 and not exact
    try:
        yield
    finally:
        cudnn.benchmark, cudnn.allow_tf32 = before

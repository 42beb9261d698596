"""Which of cuDNN's kernels are used for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def untuned(exact: bool = False) -> Iterator[None]:
    """Take cuDNN's first choice instead of timing all kernels for every new shape; `exact` also forbids TF32."""
    cudnn = torch.backends.cudnn
    before = cudnn.benchmark, cudnn.allow_tf32
    cudnn.benchmark = False
    cudnn.allow_tf32 = cudnn.allow_tf32 and not exact
    try:
        yield
    finally:
        cudnn.benchmark, cudnn.allow_tf32 = before

"""Start early what takes seconds and needs no data: the GPU's context and kernels, the compiler and its helpers.

While a command reads its data set, these load in the background; a run that needs them later finds them there. Whatever
fails here fails again, with its proper message, where it is needed.

A command that ends with an error meanwhile waits for these threads: Python stops a daemon thread by unwinding it, which
aborts the whole process when it happens inside of CUDA, and then the exit code of the error is lost.
"""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path

import torch

from longshift.data import cache_folder
from longshift.training.device import compiles, resolve_device
from longshift.training.run_config import Runtime


def keep_compiled(cache: Path | None) -> None:
    """Keep compiled kernels next to the decoded images, where they survive a reboot.

    $TORCHINDUCTOR_CACHE_DIR overrides the place.
    """
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(cache_folder(cache) / "compiled"))


def start_warmup(runtime: Runtime, steps: int) -> None:
    """Start loading what a run of `steps` steps will need on its device; returns at once."""
    device = resolve_device(runtime.device)
    if device.type != "cuda":
        return
    if compiles(runtime, device, steps):
        keep_compiled(runtime.cache)
        threading.Thread(target=_compiler).start()
    threading.Thread(target=_gpu, args=(device,)).start()


def _gpu(device: torch.device) -> None:
    with contextlib.suppress(Exception):
        x = torch.zeros(1, 8, 8, 8, device=device, dtype=torch.bfloat16)
        torch.nn.functional.conv2d(x, x)


def _compiler() -> None:
    with contextlib.suppress(Exception):
        from torch._inductor.async_compile import AsyncCompile

        AsyncCompile.warm_pool()

"""Which device, which precision, and the settings that make it fast."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from longshift.errors import UsageError
from longshift.nn import SMALL_CONV, Precision
from longshift.training.run_config import RunConfig, Runtime

COMPILE_FROM = 1500  # steps; compiling ResNet-50 takes about half a minute


def resolve_device(name: str) -> torch.device:
    """A device by name; "auto" is the first GPU, else the CPU."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise UsageError(f"unknown device {name!r}; expected auto, cpu, cuda or cuda:N") from error
    if device.type == "cuda" and not torch.cuda.is_available():
        raise UsageError(f"Expected a usable CUDA GPU for device {name!r}, got none; try --device cpu")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise UsageError(
            f"Expected a CUDA GPU of this machine, got {name!r}; it has {torch.cuda.device_count()}, from cuda:0 on"
        )
    return device


def resolve_precision(runtime: Runtime, device: torch.device) -> Precision:
    """bf16 where the GPU computes in it, else fp32."""
    if runtime.precision == "auto":
        return "bf16" if device.type == "cuda" and torch.cuda.is_bf16_supported() else "fp32"
    return runtime.precision


def use_graphs(runtime: Runtime, device: torch.device) -> bool:
    """Whether steps are captured as CUDA graphs."""
    if runtime.graphs == "on" and device.type != "cuda":
        raise UsageError("Expected a CUDA GPU for CUDA graphs, got the CPU; drop --graphs on")
    return device.type == "cuda" and runtime.graphs != "off"


def compiles(runtime: Runtime, device: torch.device, steps: int) -> bool:
    """Whether backbone and augmentation are compiled; by default on a GPU, for runs long enough to earn it back."""
    if runtime.compile == "auto":
        return device.type == "cuda" and steps >= COMPILE_FROM
    return runtime.compile == "on"


def tune(device: torch.device, precision: Precision) -> None:
    """Let cuDNN pick the fastest kernels for shapes that never change; keep fp32 exact if fp32 was requested."""
    if device.type != "cuda":
        return
    if device.index is not None:
        torch.cuda.set_device(device)  # streams and graphs are made on the current device
    torch.backends.cudnn.benchmark = True
    # Heads and losses run in fp32 and need all of it: distances of near-equal predictions drown in TF32 rounding.
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = precision == "bf16"


def synchronize(device: torch.device) -> None:
    """Wait until a GPU has done everything that was asked of it."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


@contextmanager
def use_threads(number: int) -> Iterator[None]:
    """PyTorch computes with this many threads per call inside the block, also in threads that start there; 0: as is."""
    before = torch.get_num_threads()
    torch.set_num_threads(number or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def training_threads(config: RunConfig, runtime: Runtime) -> int:
    """Threads of a run on the CPU; 0: as many as PyTorch takes by itself.

    The products of a small network are too small for several threads: on a busy machine, two threads took ten times as
    long as one on vectors, and five times as long on digits. The number is a rule, not a measurement at the start of
    the run: sums depend on the number of threads, and the same seeds must give the same model.
    """
    small = config.vectors or config.frozen or config.backbone_name == SMALL_CONV
    return runtime.threads or (1 if small else 0)

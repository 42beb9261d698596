"""Where a run computes: device, precision, threads, the warm-up of compilers, step times, a record of the machine."""

from __future__ import annotations

import contextlib
import functools
import os
import platform
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

import longshift
from longshift.data import cache_folder
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


CUBLAS = "CUBLAS_WORKSPACE_CONFIG"
_FILLING: Any = torch.utils.deterministic  # its attribute is not in its stubs


@contextmanager
def deterministic_kernels(on: bool) -> Iterator[None]:
    """Inside the block, PyTorch uses only kernels that give the same bits each time; without `on` nothing changes.

    Two things make repeated runs on a GPU differ: sums whose order depends on threads, and kernels that are chosen by
    measuring time. PyTorch raises an error for an operation that has only kernels of the first kind.
    """
    if not on:
        yield
        return
    cudnn, filling = torch.backends.cudnn, _FILLING
    algorithms = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    before = cudnn.benchmark, filling.fill_uninitialized_memory, os.environ.get(CUBLAS)
    os.environ.setdefault(CUBLAS, ":4096:8")  # read when the first matrices are multiplied
    torch.use_deterministic_algorithms(True)  # also of compiled code: its kernels are then not chosen by time
    cudnn.benchmark = False
    filling.fill_uninitialized_memory = False  # a safeguard that takes time; nothing here reads such memory
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(algorithms[0], warn_only=algorithms[1])
        cudnn.benchmark, filling.fill_uninitialized_memory, cublas = before
        if cublas is None:
            os.environ.pop(CUBLAS, None)


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


def describe_environment(device: torch.device) -> dict[str, str]:
    """Versions and hardware, as strings."""
    packages = {name: _version(name) for name in ("torch", "torchvision", "timm", "numpy")}
    return {
        "longshift": longshift.__version__,
        "commit": commit(),
        "python": platform.python_version(),
        **packages,
        "system": platform.platform(),
        "cpu": cpu_name(),
        "threads": str(torch.get_num_threads()),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "cuda": str(torch.version.cuda or "") if device.type == "cuda" else "",
        "deterministic": "yes" if torch.are_deterministic_algorithms_enabled() else "no",
    }


@functools.cache
def commit() -> str:
    """The git commit of the source tree, with "+" when it has changes.

    Outside a checkout (a container, a copied tree) it is $LONGSHIFT_COMMIT, or "".
    """
    if "LONGSHIFT_COMMIT" in os.environ:
        return os.environ["LONGSHIFT_COMMIT"]
    here = Path(__file__).parent
    try:
        head = subprocess.run(
            ["git", "rev-parse", "--short=12", "HEAD"], cwd=here, capture_output=True, text=True, timeout=5, check=True
        ).stdout.strip()
        changed = subprocess.run(
            ["git", "status", "--porcelain", "--untracked-files=no", "--", "."],
            cwd=here, capture_output=True, text=True, timeout=5, check=True,
        ).stdout.strip()  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return ""
    return head + ("+" if changed else "")


@functools.cache
def cpu_name() -> str:
    """The processor's model name, where the system has it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor()


@functools.cache
def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


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


class Stopwatch:
    """Seconds since the last lap; a lap waits for the device."""

    def __init__(self, device: torch.device) -> None:
        self._device, self._started = device, time.perf_counter()

    def restart(self) -> None:
        """Start again from zero."""
        self._started = time.perf_counter()

    def lap(self) -> float:
        """The seconds since the last lap, restart or creation."""
        synchronize(self._device)
        now = time.perf_counter()
        seconds, self._started = now - self._started, now
        return seconds

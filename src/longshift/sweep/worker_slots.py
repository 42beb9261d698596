"""How many jobs run at the same time on this machine, and on what."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from longshift.data import cores
from longshift.errors import UsageError


@dataclass(frozen=True)
class Slot:
    """A place for one job at a time."""

    device: str
    threads: int


def make_slots(device: str = "auto", jobs_per_gpu: int = 1, workers: int | None = None, threads: int = 1) -> list[Slot]:
    """One slot for each job that may run at once.

    GPUs: `jobs_per_gpu` each, the processors shared out among them. Without a GPU: as many as there are processors
    for `threads` threads each. The number of threads is fixed, not fitted to the number of jobs, because sums on the
    CPU depend on it in the last digit. `workers` overrides the number.
    """
    for name, value in (("--jobs-per-gpu", jobs_per_gpu), ("--workers", workers), ("--threads", threads)):
        if value is not None and value < 1:
            raise UsageError(f"{name}: expected at least 1, got {value}")
    if device == "cpu" or (device == "auto" and not torch.cuda.is_available()):
        count = workers or max(1, cores() // threads)
        return [Slot("cpu", threads)] * count
    if not torch.cuda.is_available():
        raise UsageError(f"device {device!r} was asked for, but this machine has no usable CUDA GPU; try --device cpu")
    gpus = [f"cuda:{i}" for i in range(torch.cuda.device_count())] if device in ("auto", "cuda") else [device]
    names = [gpu for _ in range(jobs_per_gpu) for gpu in gpus]
    if workers:
        names = [names[i % len(names)] for i in range(workers)]
    return [Slot(name, max(1, cores() // len(names))) for name in names]

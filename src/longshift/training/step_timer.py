"""The time of training steps, measured in one way for plans, estimates and benchmarks."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING

import torch

from longshift.training.device import synchronize

if TYPE_CHECKING:
    from longshift.training.trainer import Trainer


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


class StepTimer:
    """Times the steps of a trainer that has not run yet."""

    def __init__(self, trainer: Trainer) -> None:
        self.trainer, self.done = trainer, 0
        trainer.method.train()

    def seconds(self, steps: int) -> float:
        """Seconds that the next `steps` steps take."""
        synchronize(self.trainer.device)
        watch = Stopwatch(self.trainer.device)
        for _ in range(steps):
            self.trainer.step(self.done)
            self.done += 1
        return watch.lap()

    def median(self, warm: int, steps: int) -> float:
        """Median seconds per step of `steps` steps, after `warm` others: one slow step must not count."""
        self.seconds(warm)
        return statistics.median(self.seconds(1) for _ in range(steps))

    def close(self) -> None:
        """Stop loading data."""
        self.trainer.source.close()

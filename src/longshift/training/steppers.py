"""How a step is executed: plainly, or captured once as a CUDA graph and replayed. Both see the same numbers."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol

import torch
from torch import Tensor

from longshift.errors import LongshiftError
from longshift.methods import Method
from longshift.rng import HostDraws
from longshift.training.batch_source import Source
from longshift.training.graph_rng import TapedDraws

EAGER_STEPS = 3  # of each phase before its capture: allocations and kernel choices settle


class LossLog:
    """Running means of the terms of the loss, kept on the device and read only at evaluations.

    It is safe inside a captured step, because its tensors never move.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.sums: dict[str, Tensor] = {}

    def add(self, terms: dict[str, Tensor]) -> None:
        """Add one step's terms."""
        for name, value in terms.items():
            if name not in self.sums:
                self.sums[name] = torch.zeros(2, dtype=torch.float64, device=self.device)
            self.sums[name] += torch.stack([value.detach().double(), torch.ones_like(value, dtype=torch.float64)])

    def state(self) -> dict[str, Tensor]:
        """The sums so far, for a checkpoint."""
        return {name: total.clone() for name, total in self.sums.items()}

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Continue from saved sums."""
        self.sums = {name: total.to(self.device).clone() for name, total in state.items()}

    def read(self) -> dict[str, float]:
        """Means since the last reading; synchronizes once."""
        if not self.sums:
            return {}
        names = list(self.sums)
        values = torch.stack([self.sums[name] for name in names]).cpu().tolist()
        for total in self.sums.values():
            total.zero_()
        return {name: total / count for name, (total, count) in zip(names, values, strict=True) if count}


class Stepper(Protocol):
    """Runs training steps."""

    def run(self, index: int) -> None:
        """Run step `index`."""
        ...


def seed_dropout(device: torch.device, seed: int, step: int) -> None:
    """Dropout draws from torch's own generator; seeding it by step makes a resumed run equal an unbroken one.

    `torch.manual_seed` would seed all devices and note a traceback, which takes a millisecond.
    """
    if device.type == "cuda":
        index = device.index if device.index is not None else torch.cuda.current_device()
        torch.cuda.default_generators[index].manual_seed(seed * 1_000_003 + step)
    else:
        torch.default_generator.manual_seed(seed * 1_000_003 + step)


class PlainStepper:
    """One step after the other, on any device."""

    def __init__(self, method: Method, source: Source, draws: HostDraws, log: LossLog) -> None:
        self.method, self.source, self.draws, self.log = method, source, draws, log

    def run(self, index: int) -> None:
        """Run step `index`."""
        self.method.before_step(index)
        self.source.prepare(index)
        self.draws.begin(index)
        seed_dropout(self.draws.device, self.draws.seed, index)
        self.log.add(self.method.step(self.source.batch(self.draws)))


class GraphStepper:
    """Runs the first steps of each phase eagerly, then captures batch, loss, backward and update as one graph."""

    def __init__(self, method: Method, source: Source, draws: TapedDraws, log: LossLog, steps: int) -> None:
        self.method, self.source, self.draws, self.log, self.steps = method, source, draws, log, steps
        self.graphs: dict[Hashable, torch.cuda.CUDAGraph] = {}
        self.seen: dict[Hashable, int] = {}
        self.device = draws.device
        self.stream = torch.cuda.Stream(device=self.device)
        self.pool = torch.cuda.graph_pool_handle()

    def run(self, index: int) -> None:
        """Run step `index`."""
        phase = self.method.phase(index)
        # Work on one side stream throughout: capture needs one, and then nothing has to be ordered between two.
        self.stream.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(self.stream):
            self.method.before_step(index)
            self.source.prepare(index)
            seed_dropout(self.device, self.draws.host.seed, index)  # a replayed graph reads the generator's state
            if self.seen.get(phase, 0) < EAGER_STEPS:
                self._eager(index, phase)
            else:
                self._replay(index, phase)
        torch.cuda.current_stream(self.device).wait_stream(self.stream)

    def _eager(self, index: int, phase: Hashable) -> None:
        self.seen[phase] = self.seen.get(phase, 0) + 1
        self.draws.begin(index, phase)
        self.log.add(self.method.step(self.source.batch(self.draws)))

    def _replay(self, index: int, phase: Hashable) -> None:
        if phase not in self.graphs:
            self._capture(phase)
        coming: list[Hashable] = []
        for step in range(index, min(index + self.draws.block, self.steps)):
            following = self.method.phase(step)
            if following not in self.graphs:
                break
            coming.append(following)
        self.draws.seek(index, coming)
        self.graphs[phase].replay()

    def _capture(self, phase: Hashable) -> None:
        if self.draws.allocate():
            self.graphs.clear()  # they read the old tables
        torch.cuda.synchronize(self.device)
        # Gradients of the eager steps live outside the graph's memory; the captured step makes its own.
        self.method.zero_grad(set_to_none=True)
        graph = torch.cuda.CUDAGraph()
        # Only this thread's calls are part of the capture: a streaming source copies in another one meanwhile.
        try:
            with torch.cuda.graph(graph, pool=self.pool, stream=self.stream, capture_error_mode="thread_local"):
                self.draws.enter_capture()
                self.log.add(self.method.step(self.source.batch(self.draws)))
                self.draws.leave_capture()
        except RuntimeError as error:
            first = first_error(error)
            if isinstance(first, torch.OutOfMemoryError):
                raise first from None
            raise cannot_capture(type(self.method), first) from error
        self.graphs[phase] = graph


def first_error(error: RuntimeError) -> RuntimeError:
    """The cause of a failed capture: leaving the capture raises a second error, and the first one names the place."""
    return error.__context__ if isinstance(error.__context__, RuntimeError) else error


def cannot_capture(method: type[Method], error: RuntimeError) -> LongshiftError:
    """The error for the author of a method whose step reads numbers back from the GPU."""
    reason = (str(error).strip().splitlines() or ["no reason given"])[0]
    return LongshiftError(
        f"The step of {method.__name__} cannot be captured as a CUDA graph: {reason}. A captured step must not wait "
        "for the GPU (.item(), float(), printing or branching on a tensor, boolean masks). Use --graphs off, or set "
        "`capturable = False` in the method's class."
    )

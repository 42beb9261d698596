"""How a step is executed: plainly, or captured once as a CUDA graph and replayed. Both see the same numbers."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol

import torch

from longshift.data.draws import HostDraws
from longshift.engine.source import Source
from longshift.engine.tape import TapedDraws
from longshift.engine.terms import TermLog
from longshift.methods.base import Method

EAGER_STEPS = 3  # of each phase before its capture: allocations and kernel choices settle


class Stepper(Protocol):
    """Runs training steps."""

    def run(self, index: int) -> None:
        """Run step `index`."""
        ...


class PlainStepper:
    """One step after the other, on any device."""

    def __init__(self, method: Method, source: Source, draws: HostDraws, log: TermLog) -> None:
        self.method, self.source, self.draws, self.log = method, source, draws, log

    def run(self, index: int) -> None:
        """Run step `index`."""
        self.method.before_step(index)
        self.source.prepare(index)
        self.draws.begin(index)
        # Dropout draws from torch's own generator; seeding it by step makes a resumed run equal an unbroken one.
        seed = self.draws.seed * 1_000_003 + index
        if self.draws.device.type == "cpu":
            torch.default_generator.manual_seed(seed)  # torch.manual_seed would note a traceback for CUDA: 1 ms a step
        else:
            torch.manual_seed(seed)
        self.log.add(self.method.step(self.source.batch(self.draws)))


class GraphStepper:
    """Runs the first steps of each phase eagerly, then captures batch, loss, backward and update as one graph."""

    def __init__(self, method: Method, source: Source, draws: TapedDraws, log: TermLog, steps: int) -> None:
        self.method, self.source, self.draws, self.log, self.steps = method, source, draws, log, steps
        self.graphs: dict[Hashable, torch.cuda.CUDAGraph] = {}
        self.seen: dict[Hashable, int] = {}
        self.stream = torch.cuda.Stream()
        self.pool = torch.cuda.graph_pool_handle()

    def run(self, index: int) -> None:
        """Run step `index`."""
        phase = self.method.phase(index)
        # Work on one side stream throughout: capture needs one, and then nothing has to be ordered between two.
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            self.method.before_step(index)
            self.source.prepare(index)
            if self.seen.get(phase, 0) < EAGER_STEPS:
                self._eager(index, phase)
            else:
                self._replay(index, phase)
        torch.cuda.current_stream().wait_stream(self.stream)

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
        torch.cuda.synchronize()
        # Gradients of the eager steps live outside the graph's memory; the captured step makes its own.
        self.method.zero_grad(set_to_none=True)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self.pool, stream=self.stream):
            self.draws.enter_capture()
            self.log.add(self.method.step(self.source.batch(self.draws)))
            self.draws.leave_capture()
        self.graphs[phase] = graph

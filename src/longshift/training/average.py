"""Which weights count: the best by balanced validation accuracy, and averages."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

import torch
from torch import Tensor

from longshift.methods import Method
from longshift.training.evaluate import Outputs

Weights = dict[str, Tensor]
EMA_DECAY = 0.999


class BestWeights:
    """The best weights so far; none before the first evaluation."""

    def __init__(self) -> None:
        self.step = 0
        self.accuracy = -math.inf
        self.weights: Weights = {}
        self.outputs: Outputs = {}  # of these weights, as far as they are known; not in checkpoints

    def __bool__(self) -> bool:
        return bool(self.weights)

    def offer(self, step: int, accuracy: float, outputs: Outputs, copy: Callable[[], Weights]) -> None:
        """Keep a copy of the weights if they are better than all before; the first of equals stays."""
        if accuracy > self.accuracy:
            self.step, self.accuracy, self.weights, self.outputs = step, accuracy, copy(), outputs

    def state(self) -> dict[str, Any]:
        """Everything a checkpoint needs."""
        return {"step": self.step, "accuracy": self.accuracy, "weights": self.weights}

    def load_state(self, state: dict[str, Any]) -> None:
        """Undo `state`."""
        self.step, self.accuracy = int(state["step"]), float(state["accuracy"])
        self.weights, self.outputs = dict(state["weights"]), {}


def ema_decay(updates: int) -> float:
    """The decay after `updates` updates: small at first, so that the average soon forgets the initial weights."""
    return min(EMA_DECAY, (1 + updates) / (10 + updates))


class Averager:
    """Keeps an average of the weights that a method predicts with (EMA, or SWA from a step on); training ignores it.

    Its tensors are made once and changed in place, and nothing is read on the host, so it can follow steps that are
    replayed as CUDA graphs. Batch-norm statistics that are trained are averaged like weights.
    """

    def __init__(self, method: Method, kind: Literal["ema", "swa"], start: int = 0) -> None:
        self.kind, self.start, self.updates = kind, start, 0
        used = {t.data_ptr() for t in method.predictor().state_dict().values() if t.is_floating_point()}
        # state_dict gives aliases: they follow the method, whose weights are always changed in place.
        self.live = {
            name: tensor
            for name, tensor in method.state_dict().items()
            if tensor.is_floating_point() and tensor.data_ptr() in used
        }
        self.average = {name: tensor.clone() for name, tensor in self.live.items()}
        self.best = BestWeights()  # averages are selected by themselves

    @torch.no_grad()
    def update(self, index: int) -> None:
        """Add the weights after step `index`, which starts at 0."""
        if index < self.start:
            return
        share = 1 - ema_decay(self.updates) if self.kind == "ema" else 1 / (self.updates + 1)
        if self.updates == 0:
            share = 1.0
        torch._foreach_lerp_(list(self.average.values()), list(self.live.values()), share)
        self.updates += 1

    @contextmanager
    def swapped(self, values: Mapping[str, Tensor] | None = None) -> Iterator[None]:
        """The method predicts with the average (or with `values`) inside the block, and is unchanged after it."""
        live, chosen = list(self.live.values()), values or self.average
        with torch.no_grad():
            kept = [tensor.clone() for tensor in live]
            torch._foreach_copy_(live, [chosen[name] for name in self.live])
        try:
            yield
        finally:
            with torch.no_grad():
                torch._foreach_copy_(live, kept)

    def offer(self, step: int, accuracy: float, outputs: Outputs) -> None:
        """Keep the current average if it is the best so far."""
        self.best.offer(step, accuracy, outputs, lambda: {name: x.clone() for name, x in self.average.items()})

    def state(self) -> dict[str, Any]:
        """Everything a checkpoint needs."""
        return {"updates": self.updates, "average": self.average, "best": self.best.state()}

    @torch.no_grad()
    def load_state(self, state: dict[str, Any]) -> None:
        """Undo `state`, in place."""
        self.updates = int(state["updates"])
        self.best.load_state(state["best"])
        for name, tensor in self.average.items():
            tensor.copy_(state["average"][name])

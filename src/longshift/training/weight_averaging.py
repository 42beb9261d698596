"""Averages of the trained weights, for any method: EMA (exponential) or SWA (uniform, from a step on)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

import torch
from torch import Tensor

from longshift.methods import Method
from longshift.training.weight_selection import BestWeights

Average = Literal["ema", "swa"]
EMA_DECAY = 0.999


def ema_decay(updates: int, decay: float = EMA_DECAY) -> float:
    """The decay after `updates` updates: small at first, so that the average soon forgets the initial weights."""
    return min(decay, (1 + updates) / (10 + updates))


class Averager:
    """Keeps an average of the weights that a method predicts with; training does not depend on it.

    Its tensors are made once and changed in place, and nothing is read on the host, so it can follow steps that are
    replayed as CUDA graphs. Batch-norm statistics that are trained are averaged like weights.
    """

    def __init__(self, method: Method, kind: Average, start: int = 0) -> None:
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

    def offer(self, step: int, accuracy: float) -> None:
        """Keep the current average if it is the best so far."""
        self.best.offer(step, accuracy, lambda: {name: tensor.clone() for name, tensor in self.average.items()})

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

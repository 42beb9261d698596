"""Model selection: the weights of the first evaluation with the highest balanced validation accuracy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from torch import Tensor

Weights = dict[str, Tensor]


class BestWeights:
    """The best weights so far; none before the first evaluation."""

    def __init__(self) -> None:
        self.step = 0
        self.accuracy = -math.inf
        self.weights: Weights = {}

    def __bool__(self) -> bool:
        return bool(self.weights)

    def offer(self, step: int, accuracy: float, copy: Callable[[], Weights]) -> None:
        """Keep a copy of the weights if they are better than all before; the first of equals stays."""
        if accuracy > self.accuracy:
            self.step, self.accuracy, self.weights = step, accuracy, copy()

    def state(self) -> dict[str, Any]:
        """Everything a checkpoint needs."""
        return {"step": self.step, "accuracy": self.accuracy, "weights": self.weights}

    def load_state(self, state: dict[str, Any]) -> None:
        """Undo `state`."""
        self.step, self.accuracy = int(state["step"]), float(state["accuracy"])
        self.weights = dict(state["weights"])

"""Random draws with given values, for tests against numbers that were recorded elsewhere."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from longshift.errors import LongshiftError
from longshift.rng import Draws, Request


class GivenDraws(Draws):
    """Hands out values made elsewhere, in order, one queue per kind: `GivenDraws({"beta": [0.3, 0.1]})`."""

    def __init__(self, values: Mapping[str, Iterable[Any]], dtype: torch.dtype = torch.float64) -> None:
        self._queues = {kind: deque(items) for kind, items in values.items()}
        self.dtype = dtype

    def answer(self, request: Request) -> Tensor:
        """The next given value of that kind, which must have the shape asked for."""
        queue = self._queues.get(request.kind)
        if not queue:
            raise LongshiftError(f"Expected a {request.kind} draw of shape {request.shape}, but none is left.")
        value = torch.as_tensor(queue.popleft(), dtype=torch.int64 if request.whole else self.dtype)
        if tuple(value.shape) != request.shape:
            raise LongshiftError(f"Expected a {request.kind} draw of shape {request.shape}, got {tuple(value.shape)}.")
        return value

    @property
    def left(self) -> dict[str, int]:
        """How many given values of each kind have not been used."""
        return {kind: len(queue) for kind, queue in self._queues.items()}

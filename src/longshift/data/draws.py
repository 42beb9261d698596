"""Every random number of training, drawn on the host from (seed, stream, step).

A draw depends on nothing but those three, so a resumed run needs no generator state, a GPU run sees the
numbers of a CPU run, and a test can hand in numbers of its own (`GivenDraws`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from longshift.errors import LongshiftError


class Draws(Protocol):
    """What methods, augmentation and batch sampling ask for their random numbers."""

    def uniform(self, *shape: int) -> Tensor:
        """Uniform on [0, 1)."""
        ...

    def normal(self, *shape: int) -> Tensor:
        """Standard normal."""
        ...

    def beta(self, a: float, b: float, *shape: int) -> Tensor:
        """Beta(a, b)."""
        ...

    def permutation(self, n: int) -> Tensor:
        """A permutation of 0..n-1 (int64)."""
        ...

    def integers(self, high: npt.NDArray[np.int64], *shape: int) -> Tensor:
        """Integers (int64) on [0, high), `high` broadcast against `shape`."""
        ...


class HostDraws:
    """Draws from NumPy's counter-based Philox generator; call `begin(step)` before each step."""

    def __init__(
        self, seed: int, stream: int = 0, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32
    ) -> None:
        self.seed, self.stream = seed, stream
        self.device, self.dtype = torch.device(device), dtype
        self.begin(0)

    def begin(self, step: int) -> None:
        """Start the numbers of `step`; whatever was drawn before has no influence on them."""
        # The counter's low words count the draws inside a step, its highest word is the step.
        bits = np.random.Philox(key=[self.seed, self.stream], counter=[0, 0, 0, step])
        self.rng = np.random.Generator(bits)

    def _float(self, values: npt.NDArray[np.float64] | float) -> Tensor:
        return torch.as_tensor(values, dtype=self.dtype).to(self.device)

    def uniform(self, *shape: int) -> Tensor:
        """Uniform on [0, 1)."""
        return self._float(self.rng.random(shape))

    def normal(self, *shape: int) -> Tensor:
        """Standard normal."""
        return self._float(self.rng.standard_normal(shape))

    def beta(self, a: float, b: float, *shape: int) -> Tensor:
        """Beta(a, b)."""
        return self._float(self.rng.beta(a, b, shape))

    def permutation(self, n: int) -> Tensor:
        """A permutation of 0..n-1."""
        return torch.as_tensor(self.rng.permutation(n), dtype=torch.int64).to(self.device)

    def integers(self, high: npt.NDArray[np.int64], *shape: int) -> Tensor:
        """Integers on [0, high)."""
        return torch.as_tensor(self.rng.integers(0, high, shape), dtype=torch.int64).to(self.device)


class GivenDraws:
    """Hands out values made elsewhere, in order, one queue per kind: `GivenDraws({"beta": [0.3, 0.1]})`."""

    def __init__(self, values: Mapping[str, Iterable[Any]], dtype: torch.dtype = torch.float64) -> None:
        self._queues = {kind: deque(items) for kind, items in values.items()}
        self.dtype = dtype

    def _next(self, kind: str, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        queue = self._queues.get(kind)
        if not queue:
            raise LongshiftError(f"a {kind} draw of shape {shape} was asked for, but no given value is left")
        value = torch.as_tensor(queue.popleft(), dtype=dtype)
        if tuple(value.shape) != shape:
            raise LongshiftError(f"a {kind} draw of shape {shape} was asked for, the given value has {value.shape}")
        return value

    def uniform(self, *shape: int) -> Tensor:
        """The next given uniform value."""
        return self._next("uniform", shape, self.dtype)

    def normal(self, *shape: int) -> Tensor:
        """The next given normal value."""
        return self._next("normal", shape, self.dtype)

    def beta(self, a: float, b: float, *shape: int) -> Tensor:
        """The next given Beta value."""
        return self._next("beta", shape, self.dtype)

    def permutation(self, n: int) -> Tensor:
        """The next given permutation."""
        return self._next("permutation", (n,), torch.int64)

    def integers(self, high: npt.NDArray[np.int64], *shape: int) -> Tensor:
        """The next given integers."""
        return self._next("integers", shape, torch.int64)

    @property
    def left(self) -> dict[str, int]:
        """How many given values of each kind have not been used."""
        return {kind: len(queue) for kind, queue in self._queues.items()}

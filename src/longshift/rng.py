"""Every random number of training, drawn on the host from (seed, stream, step).

A draw depends on nothing but those three, so a resumed run needs no generator state, a GPU run sees the
numbers of a CPU run, and a test can hand in numbers of its own (another subclass of `Draws`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from longshift.array_types import IntArray

Kind = Literal["uniform", "normal", "beta", "permutation", "integers"]


@dataclass(frozen=True, eq=False)
class Request:
    """One question for random numbers."""

    kind: Kind
    shape: tuple[int, ...]
    parameters: tuple[Any, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether the answer is whole numbers."""
        return self.kind in ("permutation", "integers")


class Draws:
    """What methods, augmentation and batch sampling ask for random numbers; `answer` makes them."""

    def answer(self, request: Request) -> Tensor:
        """The numbers asked for."""
        raise NotImplementedError

    def uniform(self, *shape: int) -> Tensor:
        """Uniform on [0, 1)."""
        return self.answer(Request("uniform", shape))

    def normal(self, *shape: int) -> Tensor:
        """Standard normal."""
        return self.answer(Request("normal", shape))

    def beta(self, a: float, b: float, *shape: int) -> Tensor:
        """Beta(a, b)."""
        return self.answer(Request("beta", shape, (a, b)))

    def permutation(self, n: int) -> Tensor:
        """A permutation of 0..n-1 (int64)."""
        return self.answer(Request("permutation", (n,)))

    def integers(self, low: IntArray, high: IntArray, *shape: int) -> Tensor:
        """Integers (int64) on [low, high), both broadcast against `shape`."""
        return self.answer(Request("integers", shape, (low, high)))


def generator(seed: int, stream: int, step: int) -> np.random.Generator:
    """NumPy's counter-based Philox: its highest counter word is the step, the lower ones count inside a step."""
    return np.random.Generator(np.random.Philox(key=[seed, stream], counter=[0, 0, 0, step]))


def draw(rng: np.random.Generator, request: Request) -> npt.NDArray[Any]:
    """Answer one request on the host."""
    if request.kind == "uniform":
        return rng.random(request.shape)
    if request.kind == "normal":
        return rng.standard_normal(request.shape)
    if request.kind == "beta":
        a, b = request.parameters
        return np.asarray(rng.beta(a, b, request.shape))
    if request.kind == "permutation":
        return rng.permutation(request.shape[0])
    low, high = request.parameters
    return np.asarray(rng.integers(low, high, request.shape))


class HostDraws(Draws):
    """Draws on the host and moves the numbers to the device; call `begin(step)` before each step."""

    def __init__(
        self, seed: int, stream: int = 0, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32
    ) -> None:
        self.seed, self.stream = seed, stream
        self.device, self.dtype = torch.device(device), dtype
        self.begin(0)

    def begin(self, step: int) -> None:
        """Start the numbers of `step`; whatever was drawn before has no influence on them."""
        self.rng = generator(self.seed, self.stream, step)

    def answer(self, request: Request) -> Tensor:
        """The numbers asked for, on the device."""
        dtype = torch.int64 if request.whole else self.dtype
        return torch.as_tensor(draw(self.rng, request), dtype=dtype).to(self.device)

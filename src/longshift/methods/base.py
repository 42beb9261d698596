"""What a method is. Most methods write only `loss`; those with their own optimisation override `step`."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from longshift.methods.batch import Batch
from longshift.methods.info import MethodInfo
from longshift.methods.problem import Problem
from longshift.methods.search_space import MethodConfig
from longshift.nn import Network, optim
from longshift.rng import Draws


@dataclass(frozen=True)
class Losses:
    """`total` is what is minimised; `terms` are the named numbers that are logged."""

    total: Tensor
    terms: dict[str, Tensor]


class Method(nn.Module):
    """A way to train a classifier on several domains.

    Life of a method: `__init__` (calls `build`), moved to its device, `start` (makes the optimizers), then for
    each step `before_step(index)` and `step(batch)`. The engine owns all else: data, devices, logs, checkpoints.

    A step must have static shapes and must not read tensors on the host, so that it can be captured in a CUDA
    graph. What changes over time goes through two doors: numbers are written into buffers by `before_step`;
    code that changes is announced by `phase`, and one graph is captured per phase.
    """

    Config: ClassVar[type[MethodConfig]] = MethodConfig
    info: ClassVar[MethodInfo]
    # Steps whose mathematics reads tensors on the host cannot be captured; such a method says so here.
    capturable: ClassVar[bool] = True
    # What the published code does wrong and what is done about it here, one sentence or two each (docs/methods.md).
    repairs: ClassVar[tuple[str, ...]] = ()

    def __init__(self, network: Network, problem: Problem, config: MethodConfig) -> None:
        super().__init__()
        if not isinstance(config, self.Config):
            raise TypeError(f"Expected `config` to be a {self.Config.__name__}, but got {type(config).__name__}.")
        self.network = network
        self.problem = problem
        self.config = config
        self.optimizers: dict[str, torch.optim.Optimizer] = {}
        self.draws: Draws
        self.step_index = 0
        self.build()

    # -- what methods write ------------------------------------------------------------------------------------

    def build(self) -> None:
        """Add layers and buffers beyond the network."""

    def make_optimizers(self) -> dict[str, torch.optim.Optimizer]:
        """The optimizers by name; by default one Adam, "main", over all parameters."""
        return {"main": optim.adam(self.parameters(), self.config.lr, self.config.weight_decay)}

    def before_step(self, index: int) -> None:
        """Host-side work before step `index` (from 0): schedules, optimizer resets. Call super first."""
        self.step_index = index

    def phase(self, index: int) -> Hashable:
        """Steps with equal phases run the same code; a change tells the engine to capture another graph."""
        return None

    def loss(self, batch: Batch) -> Losses:
        """The objective on a batch."""
        raise NotImplementedError(f"{type(self).__name__} must define loss(batch) or step(batch)")

    def step(self, batch: Batch) -> dict[str, Tensor]:
        """One update; returns the terms to log, computed before the update."""
        losses = self.loss(batch)
        self.minimise(losses.total)
        return {name: value.detach() for name, value in losses.terms.items()}

    def wants_features(self, index: int) -> bool:
        """Whether `receive_features` must be called before step `index`."""
        return False

    def receive_features(self, features: Tensor, y: Tensor, d: Tensor) -> None:
        """Take the current features of the whole training set (no augmentation, evaluation mode)."""

    def predictor(self) -> nn.Module:
        """The module that maps inputs to logits after training."""
        return self.network

    # -- what methods use --------------------------------------------------------------------------------------

    def minimise(self, total: Tensor, optimizer: str = "main") -> None:
        """Gradient of `total`, one step of the named optimizer."""
        chosen = self.optimizers[optimizer]
        chosen.zero_grad(set_to_none=True)
        total.backward()
        chosen.step()

    def reset_optimizer(self, optimizer: str = "main", lr: float | None = None) -> None:
        """Make the named optimizer fresh, as a new one would be."""
        optim.reset(self.optimizers[optimizer], lr)

    # -- what the engine uses ----------------------------------------------------------------------------------

    def start(self, draws: Draws) -> None:
        """Make the optimizers; call it when the method is on its device."""
        self.draws = draws
        self.optimizers = self.make_optimizers()

    def predict(self, x: Tensor) -> Tensor:
        """Logits (B, classes); call `eval()` before and `train()` after."""
        logits: Tensor = self.predictor()(x)
        return logits

    def state(self) -> dict[str, Any]:
        """Everything that training needs to go on: parameters, buffers and optimizer states."""
        return {
            "module": self.state_dict(),
            "optimizers": {name: chosen.state_dict() for name, chosen in self.optimizers.items()},
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Undo `state`; call it after `start`."""
        self.load_state_dict(state["module"])
        for name, chosen in self.optimizers.items():
            optim.load_state(chosen, state["optimizers"][name])


def scalar_buffer(value: float = 0.0) -> Tensor:
    """A number that `before_step` may change between steps: `self.register_buffer("weight", scalar_buffer(1.0))`."""
    return torch.tensor(value, dtype=torch.get_default_dtype())

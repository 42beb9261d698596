"""The base class of methods, and the batches and losses it works with.

Most methods define only `loss`; those with their own optimization override `step`.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from longshift.methods.catalog import MethodInfo
from longshift.methods.config import MethodConfig, StyleConfig
from longshift.nn import Network, optim
from longshift.rng import Draws, HostDraws


@dataclass(frozen=True)
class Batch:
    """`domains * per_domain` samples; rows `d * per_domain ... (d + 1) * per_domain - 1` belong to domain d.

    Attributes:
        x: Inputs (B, ...).
        y: Classes (B,), int64.
        d: Domains (B,), int64: 0 0 0 1 1 1 2 2 2.
        domains: Number of domains.
        style_d: The domain (B,) whose style a sample has; None if no styles are mixed.

    Example:
        >>> import torch
        >>> batch = Batch(torch.rand(6, 4), torch.arange(6) % 3, torch.tensor([0, 0, 0, 1, 1, 1]), domains=2)
        >>> batch.by_domain(batch.y).tolist()
        [[0, 1, 2], [0, 1, 2]]
    """

    x: Tensor
    y: Tensor
    d: Tensor
    domains: int
    # (B,) int64: the domain whose style a sample has, d where its style is its own; None without a style stage
    style_d: Tensor | None = None

    @classmethod
    def from_samples(cls, x: Tensor, y: Tensor, d: Tensor, domains: int) -> Batch:
        """Sort samples by domain.

        Args:
            x: Inputs (B, ...).
            y: Classes (B,), int64.
            d: Domains (B,), int64, in any order; each domain has the same number of samples.
            domains: Number of domains.

        Returns:
            The batch.

        Raises:
            ValueError: If the domains have different numbers of samples. The check reads `d` on the host.

        Example:
            >>> import torch
            >>> x, y, d = torch.arange(4), torch.tensor([0, 0, 1, 1]), torch.tensor([1, 0, 1, 0])
            >>> batch = Batch.from_samples(x, y, d, domains=2)
            >>> batch.x.tolist(), batch.d.tolist()
            ([1, 3, 0, 2], [0, 0, 1, 1])
        """
        sizes = [int((d == domain).sum()) for domain in range(domains)]
        if len(set(sizes)) != 1 or sum(sizes) != len(d):
            raise ValueError(
                f"Expected the same number of samples from each of the {domains} domains, got {sizes} of {len(d)}."
            )
        order = d.argsort(stable=True)
        return cls(x[order], y[order], d[order], domains)

    def __len__(self) -> int:
        return int(self.y.shape[0])

    @property
    def per_domain(self) -> int:
        """Samples per domain."""
        return len(self) // self.domains

    def by_domain(self, values: Tensor) -> Tensor:
        """View values per sample (B, ...) as (domains, per_domain, ...)."""
        return values.reshape(self.domains, self.per_domain, *values.shape[1:])


@dataclass(frozen=True)
class Problem:
    """What a method may know about the task.

    Attributes:
        classes: Number of classes.
        domains: Number of source domains.
        counts: Training samples by domain and class; a class may be missing (0).
        steps: Number of training steps.

    Example:
        >>> Problem(classes=2, domains=2, counts=((90, 5), (80, 9))).steps
        5000
    """

    classes: int
    domains: int
    counts: tuple[tuple[int, ...], ...]
    steps: int = 5000

    def __post_init__(self) -> None:
        if len(self.counts) != self.domains or any(len(row) != self.classes for row in self.counts):
            shape = f"{len(self.counts)} x {len(self.counts[0]) if self.counts else 0}"
            raise ValueError(f"Expected `counts` of {self.domains} domains x {self.classes} classes, but got {shape}.")

    def counts_tensor(self, dtype: torch.dtype | None = None) -> Tensor:
        """Return the training counts (domains, classes) on the CPU; register them as a buffer of the method."""
        return torch.tensor(self.counts, dtype=dtype or torch.get_default_dtype())


@dataclass(frozen=True)
class Losses:
    """The result of `Method.loss`.

    Attributes:
        total: What is minimized.
        terms: What is logged, by name.

    Example:
        >>> import torch
        >>> risk, penalty = torch.tensor(1.0), torch.tensor(0.5)
        >>> Losses(risk + penalty, {"risk": risk, "penalty": penalty}).total.item()
        1.5
    """

    total: Tensor
    terms: dict[str, Tensor]


class Method(nn.Module):
    """A way to train a classifier on several domains.

    The trainer calls `__init__` (which calls `build`), moves the method to its device, calls `start` (which creates the
    optimizers), and then `before_step(index)` and `step(batch)` in each step. It owns data, devices, logs, checkpoints.

    A step must have static shapes and must not read tensors on the host, so that it can be captured in a CUDA
    graph. To change numbers over time, write them into buffers in `before_step`. To change code over time,
    return another `phase`: one graph is captured per phase.

    Args:
        network: The network to train.
        problem: Classes, domains, counts and steps.
        config: Hyper-parameters.

    Example:
        >>> import torch, longshift
        >>> method = longshift.create_method("erm", torch.nn.Flatten(), [[9, 9], [9, 9]], feature_dim=12)
        >>> batch = Batch(torch.rand(4, 3, 2, 2), torch.tensor([0, 1, 0, 1]), torch.tensor([0, 0, 1, 1]), domains=2)
        >>> sorted(method.step(batch))
        ['loss']
    """

    Config: ClassVar[type[MethodConfig]] = MethodConfig
    # Style mixing of the runs of this method, where a run does not state it.
    Style: ClassVar[type[StyleConfig]] = StyleConfig
    info: ClassVar[MethodInfo]
    # False for a method whose steps must read tensors on the host, and so cannot be captured.
    capturable: ClassVar[bool] = True
    # False for a method that is solved at its first step and trains only the classifier.
    by_steps: ClassVar[bool] = True
    # Mistakes in the published code and how this method handles them, one or two sentences each.
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

    # -- methods override these ------------------------------------------------------------------------------------

    def build(self) -> None:
        """Add layers and buffers."""

    def make_optimizers(self) -> dict[str, torch.optim.Optimizer]:
        """Create the optimizers by name; by default one Adam, "main", for all parameters."""
        return {"main": optim.adam(self.parameters(), self.config.lr, self.config.weight_decay)}

    def before_step(self, index: int) -> None:
        """Do host-side work before step `index` (from 0): schedules, optimizer resets. Call super first."""
        self.step_index = index

    def phase(self, index: int) -> Hashable:
        """Return the phase of a step; steps with equal phases run the same code, so one graph is captured per phase."""
        return None

    def loss(self, batch: Batch) -> Losses:
        """Compute the objective on a batch."""
        raise NotImplementedError(f"{type(self).__name__} must define loss(batch) or step(batch)")

    def step(self, batch: Batch) -> dict[str, Tensor]:
        """Update the weights; return the terms to log, computed before the update."""
        losses = self.loss(batch)
        self.minimize(losses.total)
        return {name: value.detach() for name, value in losses.terms.items()}

    def wants_features(self, index: int) -> bool:
        """Whether `receive_features` must be called before step `index`."""
        return False

    def receive_features(self, features: Tensor, y: Tensor, d: Tensor) -> None:
        """Receive the current features of the whole training set (no augmentation, evaluation mode)."""

    def predictor(self) -> nn.Module:
        """Return the module that maps inputs to logits after training."""
        return self.network

    # -- methods call these --------------------------------------------------------------------------------------

    def minimize(self, total: Tensor, optimizer: str = "main") -> None:
        """Compute the gradient of `total` and take one step of the named optimizer."""
        chosen = self.optimizers[optimizer]
        chosen.zero_grad(set_to_none=True)
        total.backward()
        chosen.step()

    def reset_optimizer(self, optimizer: str = "main", lr: float | None = None) -> None:
        """Reset the named optimizer to the state of a new one."""
        optim.reset(self.optimizers[optimizer], lr)

    # -- the trainer calls these ----------------------------------------------------------------------------------

    def start(self, draws: Draws | int = 0) -> None:
        """Create the optimizers; call it when the method is on its device. An int is the seed of random numbers."""
        if isinstance(draws, int):
            weight = next(self.parameters())
            draws = HostDraws(draws, device=weight.device, dtype=weight.dtype)
        self.draws = draws
        self.optimizers = self.make_optimizers()

    def predict(self, x: Tensor) -> Tensor:
        """Compute logits (B, classes); call `eval()` before and `train()` after."""
        logits: Tensor = self.predictor()(x)
        return logits

    def state(self) -> dict[str, Any]:
        """Return all that is needed to resume: parameters, buffers and optimizer states."""
        return {
            "module": self.state_dict(),
            "optimizers": {name: chosen.state_dict() for name, chosen in self.optimizers.items()},
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Load a `state`; call it after `start`."""
        self.load_state_dict(state["module"])
        for name, chosen in self.optimizers.items():
            optim.load_state(chosen, state["optimizers"][name])


def scalar_buffer(value: float = 0.0) -> Tensor:
    """Create a number that `before_step` can change: `self.register_buffer("weight", scalar_buffer(1.0))`."""
    return torch.tensor(value, dtype=torch.get_default_dtype())


@dataclass(frozen=True)
class Annealing:
    """The weight of the penalty `before` step `start` and `after` it; `lr` is the learning rate after the reset."""

    start: int
    before: float
    after: float
    lr: float | None = None


class AnnealedMethod(Method):
    """A method with the buffer `penalty_weight`, which changes as `annealing` says."""

    penalty_weight: Tensor

    def annealing(self) -> Annealing:
        """Return when and how the weight changes."""
        raise NotImplementedError(f"{type(self).__name__} must define annealing()")

    def build(self) -> None:
        """Add the weight as a buffer, so that a captured step reads the current value."""
        self.register_buffer("penalty_weight", scalar_buffer())

    def before_step(self, index: int) -> None:
        """Set the weight; when it changes, reset the optimizers, because old moments do not fit the new loss."""
        super().before_step(index)
        plan = self.annealing()
        self.penalty_weight.fill_(plan.before if index < plan.start else plan.after)
        if index == plan.start:
            for name in self.optimizers:
                self.reset_optimizer(name, plan.lr)

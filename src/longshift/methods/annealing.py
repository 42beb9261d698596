"""A penalty whose weight changes once, with a fresh optimizer at that moment (IRM, VREx, Fishr, RDM, TCRI)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from longshift.methods.base import Method, scalar_buffer


@dataclass(frozen=True)
class Annealing:
    """The penalty's weight `before` step `start` and `after` (from it on); `lr` is the rate of the fresh Adam."""

    start: int
    before: float
    after: float
    lr: float | None = None


class AnnealedMethod(Method):
    """A method with the buffer `penalty_weight`; a subclass says by `annealing` how it changes."""

    penalty_weight: Tensor

    def annealing(self) -> Annealing:
        """When the weight changes, and from what to what."""
        raise NotImplementedError(f"{type(self).__name__} must define annealing()")

    def build(self) -> None:
        """Add the weight as a buffer, so that a captured step reads its current value."""
        self.register_buffer("penalty_weight", scalar_buffer())

    def before_step(self, index: int) -> None:
        """Set the weight; at the change, start the optimizers afresh (the loss jumps, old moments mislead)."""
        super().before_step(index)
        plan = self.annealing()
        self.penalty_weight.fill_(plan.before if index < plan.start else plan.after)
        if index == plan.start:
            for name in self.optimizers:
                self.reset_optimizer(name, plan.lr)

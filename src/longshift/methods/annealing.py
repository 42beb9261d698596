"""Methods with a penalty whose weight changes once, together with an optimizer reset (IRM, VREx, Fishr, RDM, TCRI)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from longshift.methods.base import Method, scalar_buffer


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

"""Fish: gradient matching across domains, by a walk through the domains of which a share is kept."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from longshift.methods.base import Batch, Method
from longshift.methods.config import MethodConfig, choice, hp
from longshift.methods.registry import register
from longshift.nn import copy_tensors, trainable


class FishConfig(MethodConfig):
    """Hyper-parameters of Fish."""

    meta_lr: float = hp(0.5, choice(0.05, 0.1, 0.5), "share of the inner walk that is kept", at_least=0.0, at_most=1.0)


@register(
    "fish",
    title="Fish",
    family="dg",
    row=11,
    paper="Shi et al., Gradient Matching for Domain Generalization, ICLR 2022",
    idea="take one Adam step per domain in turn, then keep a share of the way",
    formula=r"\theta \leftarrow \theta + \epsilon \, (\tilde\theta - \theta) , \qquad \tilde\theta = \text{one "
    r"Adam step per domain, in turn}",
    use="To compare with gradient matching; each step needs one update per domain.",
)
class Fish(Method):
    """One Adam step per domain, whose moments persist between steps; then a share `meta_lr` of the walk is kept."""

    Config = FishConfig
    config: FishConfig
    repairs: ClassVar[tuple[str, ...]] = (
        "as published, `loss` is that of the last domain only; `mean_loss` is the mean over all inner steps",
    )

    def step(self, batch: Batch) -> dict[str, Tensor]:
        """Walk through the domains, then move from the start by `meta_lr` times the walk."""
        weights: list[Tensor] = list(trainable(self.network))
        if not self.network.freeze_bn:
            # As published, statistics from the walk are scaled like the weights.
            weights += [b for b in self.network.buffers() if b.is_floating_point()]
        start = copy_tensors(weights)
        losses: list[Tensor] = []
        for x, y in zip(batch.by_domain(batch.x), batch.by_domain(batch.y), strict=True):
            loss = cross_entropy(self.network(x), y)
            self.minimize(loss)
            losses.append(loss.detach())
        with torch.no_grad():
            torch._foreach_lerp_(weights, start, 1 - self.config.meta_lr)
        return {"loss": losses[-1], "mean_loss": torch.stack(losses).mean()}

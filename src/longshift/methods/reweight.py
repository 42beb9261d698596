"""ReWeight: cross-entropy weighted by inverse class frequency in each domain."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from longshift.losses import inverse_frequency
from longshift.methods.base import Losses, Method
from longshift.methods.batch import Batch
from longshift.methods.registry import register


@register(
    "reweight",
    title="ReWeight",
    family="imbalance",
    row=18,
    paper="Huang et al., Learning Deep Representation for Imbalanced Classification, CVPR 2016",
    idea="weight each sample by the inverse training count of its class in its domain",
)
class ReWeight(Method):
    """Weighted mean cross-entropy per domain (divided by the sum of the weights), averaged over domains.

    Weights are 1 / count, scaled to sum to the number of classes; a class missing from a domain gets the weight of a
    class with one sample.
    """

    weights: Tensor  # (domains, classes), in float64, converted to the precision of the losses
    repairs: ClassVar[tuple[str, ...]] = (
        "A class missing from a domain makes every weight of the published code undefined (1 / 0); it is counted as 1.",
    )

    def build(self) -> None:
        """Add the weights."""
        self.register_buffer("weights", inverse_frequency(self.problem.counts_tensor(torch.float64)))

    def loss(self, batch: Batch) -> Losses:
        """Compute the mean over domains of the weighted mean cross-entropy."""
        risk = batch.by_domain(cross_entropy(self.network(batch.x), batch.y, reduction="none"))
        weight = batch.by_domain(self.weights.to(risk.dtype)[batch.d, batch.y])
        total = ((weight * risk).sum(1) / weight.sum(1)).mean()
        return Losses(total, {"loss": total})

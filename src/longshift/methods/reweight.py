"""ReWeight: cross-entropy weighted by inverse class frequency in each domain."""

from __future__ import annotations

from typing import ClassVar

import torch

from longshift.losses import InverseFrequencyCE
from longshift.methods.base import Batch, Losses, Method
from longshift.methods.registry import register


@register(
    "reweight",
    title="ReWeight",
    family="imbalance",
    row=18,
    paper="Huang et al., Learning Deep Representation for Imbalanced Classification, CVPR 2016",
    idea="weight each sample by the inverse training count of its class in its domain",
    formula=r"\frac{1}{D} \sum_d \frac{\sum_{i \in d} w_{d, y_i} \ell_i}{\sum_{i \in d} w_{d, y_i}} , \qquad w_{d,"
    r" k} \propto \frac{1}{n_{d, k}}",
    use="If rare classes matter and you want the simplest remedy; very rare classes can make it unstable.",
)
class ReWeight(Method):
    """Weighted mean cross-entropy per domain (divided by the sum of the weights), averaged over domains.

    Weights are 1 / count, scaled to sum to the number of classes; a class missing from a domain gets the weight of a
    class with one sample.
    """

    repairs: ClassVar[tuple[str, ...]] = (
        "A class missing from a domain makes every weight of the published code undefined (1 / 0); it is counted as 1.",
    )

    def build(self) -> None:
        """Add the loss with the counts of each domain."""
        self.criterion = InverseFrequencyCE(self.problem.counts_tensor(torch.int64))

    def loss(self, batch: Batch) -> Losses:
        """Compute the mean over domains of the weighted mean cross-entropy."""
        total = self.criterion(self.network(batch.x), batch.y, batch.d)
        return Losses(total, {"loss": total})

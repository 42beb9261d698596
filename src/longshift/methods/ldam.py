"""LDAM: label-distribution-aware margins (Cao et al. 2019), with the counts of each sample's domain."""

from __future__ import annotations

from typing import ClassVar

import torch

from longshift.losses import LDAMLoss
from longshift.methods.base import Batch, Losses, Method
from longshift.methods.config import MethodConfig, choice, hp, power
from longshift.methods.registry import register


class LDAMConfig(MethodConfig):
    """Hyper-parameters of LDAM."""

    max_m: float = hp(0.5, power(10, -1, -0.1), "largest margin in each domain", at_least=0.0)
    scale: float = hp(30.0, choice(10.0, 30.0), "factor on the logits in the loss", at_least=0.0)


@register(
    "ldam",
    title="LDAM",
    family="imbalance",
    row=20,
    paper="Cao et al., Learning Imbalanced Datasets with Label-Distribution-Aware Margin Loss, NeurIPS 2019, "
    "arXiv:1906.07413",
    idea="require larger margins for rare classes, proportional to count^(-1/4)",
    formula=r"\frac{1}{B} \sum_i \ell\left( s \, (z_i - \Delta_{d_i, y_i} e_{y_i}), y_i \right) , \qquad "
    r"\Delta_{d, k} \propto n_{d, k}^{-1/4}",
    use="To compare with margins; BSoftmax was better in our runs.",
)
class LDAM(Method):
    """Cross-entropy of scaled logits, with a margin subtracted from the logit of the true class.

    Margins are scaled in each domain so that the largest is `max_m`; a class missing from a domain gets the largest
    margin and does not affect the others.
    """

    Config = LDAMConfig
    config: LDAMConfig
    repairs: ClassVar[tuple[str, ...]] = (
        "A class missing from a domain makes every margin of the published code undefined (0^(-1/4)); here it gets "
        "the largest margin and the others are scaled without it.",
    )

    def build(self) -> None:
        """Add the loss with the counts of each domain."""
        counts = self.problem.counts_tensor(torch.int64)
        self.criterion = LDAMLoss(counts, max_margin=self.config.max_m, scale=self.config.scale)

    def loss(self, batch: Batch) -> Losses:
        """Compute the mean margin loss over the batch."""
        total = self.criterion(self.network(batch.x), batch.y, batch.d)
        return Losses(total, {"loss": total})

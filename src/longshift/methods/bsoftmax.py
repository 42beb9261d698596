"""BSoftmax: balanced softmax (Ren et al. 2020), with the counts of each sample's domain."""

from __future__ import annotations

from typing import ClassVar

import torch

from longshift.losses import BalancedSoftmaxLoss
from longshift.methods.base import Batch, Losses, Method
from longshift.methods.registry import register


@register(
    "bsoftmax",
    title="BSoftmax",
    family="imbalance",
    row=19,
    paper="Ren et al., Balanced Meta-Softmax for Long-Tailed Visual Recognition, NeurIPS 2020, arXiv:2007.10740",
    idea="add the log class counts of the domain to the logits during training",
    formula=r"- \frac{1}{B} \sum_i \log \frac{n_{d_i, y_i} \, e^{z_{i, y_i}}}{\sum_k n_{d_i, k} \, e^{z_{i, k}}}",
    use="First, whenever rare classes matter as much as common ones: free, no hyper-parameters, the best "
    "published method in our runs. Use it for vectors and for domains that do not differ in style.",
)
class BSoftmax(Method):
    """Cross-entropy of logits + log(count of the class in the sample's domain); prediction uses the plain logits.

    A class missing from a domain is left out of that domain's softmax.
    """

    repairs: ClassVar[tuple[str, ...]] = (
        "The logarithm of a count of 0 is replaced by a finite number (-87.3): the class is left out of that domain's "
        "softmax, but a sample of it does not make the loss infinite.",
    )

    def build(self) -> None:
        """Add the loss with the counts of each domain."""
        self.criterion = BalancedSoftmaxLoss(self.problem.counts_tensor(torch.int64))

    def loss(self, batch: Batch) -> Losses:
        """Compute the mean cross-entropy of the shifted logits."""
        total = self.criterion(self.network(batch.x), batch.y, batch.d)
        return Losses(total, {"loss": total})

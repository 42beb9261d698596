"""Focal loss (Lin et al. 2017)."""

from __future__ import annotations

from longshift.losses import FocalLoss
from longshift.methods.base import Batch, Losses, Method
from longshift.methods.config import MethodConfig, hp, log_uniform
from longshift.methods.registry import register


class FocalConfig(MethodConfig):
    """Hyper-parameters of the focal loss."""

    gamma: float = hp(
        1.0, log_uniform(0.5, 5), "how fast the weight of a sample decreases with its probability", at_least=0.0
    )


@register(
    "focal",
    title="Focal",
    family="imbalance",
    row=17,
    paper="Lin et al., Focal Loss for Dense Object Detection, ICCV 2017, arXiv:1708.02002",
    idea="weight each sample by (1 - p)^gamma, so that easy samples count less",
    formula=r"\frac{1}{B} \sum_i (1 - p_{i, y_i})^{\gamma} \, \ell_i",
    use="If easy samples dominate; it does not know class counts, so rare classes gain little.",
)
class Focal(Method):
    """Mean of (1 - p)^gamma times cross-entropy, with p the probability of the true class."""

    Config = FocalConfig
    config: FocalConfig

    def build(self) -> None:
        """Add the loss."""
        self.criterion = FocalLoss(self.config.gamma)

    def loss(self, batch: Batch) -> Losses:
        """Compute the mean focal loss over the batch."""
        total = self.criterion(self.network(batch.x), batch.y)
        return Losses(total, {"loss": total})

"""EQRM: empirical quantile risk minimization (Eastwood et al. 2022)."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar

from torch.nn.functional import cross_entropy

from longshift.losses import kde_quantile
from longshift.methods.base import Batch, Losses, Method
from longshift.methods.config import MethodConfig, fixed, hp, power, uniform
from longshift.methods.registry import register


class EQRMConfig(MethodConfig):
    """Hyper-parameters of EQRM."""

    quantile: float = hp(
        0.75, uniform(0.5, 0.99), "quantile of the domains' risks to minimize", at_least=1e-4, at_most=0.9999
    )
    burnin: int = hp(
        2500, power(10, 2.5, 3.5, integer=True), "steps on the mean risk before the quantile", at_least=0, steps=True
    )
    eqrm_lr: float = hp(1e-6, power(10, -7, -5), "learning rate after the burn-in", at_least=0.0)
    implicit: bool = hp(False, fixed(), "repair: use the gradient of the quantile instead of the published gradient")


@register(
    "eqrm",
    title="EQRM",
    family="dg",
    row=13,
    paper="Eastwood et al., Probable Domain Generalization via Quantile Risk Minimization, NeurIPS 2022, "
    "arXiv:2207.09944",
    idea="minimize a high quantile of the distribution of risks over domains",
    formula=r"F^{-1}_{R}(\alpha) , \qquad F_R = \text{kernel density estimate of } R_1, \ldots, R_D",
    use="If you want a guarantee for most domains instead of the mean or the worst; it needs more than a few domains.",
)
class EQRM(Method):
    """The mean risk during the burn-in, then a quantile of a Gaussian kernel density estimate of the domains' risks.

    At the end of the burn-in Adam is reset, with learning rate `eqrm_lr`.
    """

    Config = EQRMConfig
    config: EQRMConfig
    repairs: ClassVar[tuple[str, ...]] = (
        "The published gradient treats the position of the quantile between its two bounds as constant, so it depends "
        "only on the smallest risk, the largest risk and the kernel width. `implicit=True` uses the gradient of the "
        "quantile (implicit function theorem).",
        "The published search draws the burn-in as a fraction, which no step equals, so that Adam is never "
        "reset; here it is drawn as an integer.",
        "Equal risks have a kernel width of 0; it is clamped above 0, so that loss and gradient stay finite.",
    )

    def before_step(self, index: int) -> None:
        """Reset Adam at the end of the burn-in."""
        super().before_step(index)
        if index == self.config.burnin:
            self.reset_optimizer(lr=self.config.eqrm_lr)

    def phase(self, index: int) -> Hashable:
        """Return whether the burn-in is over."""
        return index < self.config.burnin

    def loss(self, batch: Batch) -> Losses:
        """Compute the mean or the quantile of the domains' risks."""
        risks = batch.by_domain(cross_entropy(self.network(batch.x), batch.y, reduction="none")).mean(1)
        if self.phase(self.step_index):
            total = risks.mean()
        else:
            total = kde_quantile(risks, self.config.quantile, self.config.implicit)
        return Losses(total, {"loss": total})

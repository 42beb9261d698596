"""EQRM: empirical quantile risk minimisation (Eastwood et al. 2022)."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar

from torch.nn.functional import cross_entropy

from longshift.losses import kde_quantile
from longshift.methods.base import Losses, Method
from longshift.methods.batch import Batch
from longshift.methods.registry import register
from longshift.methods.search_space import MethodConfig, fixed, hp, power, uniform


@dataclass(frozen=True)
class EQRMConfig(MethodConfig):
    """Hyper-parameters of EQRM."""

    quantile: float = hp(
        0.75, uniform(0.5, 0.99), "which quantile of the domains' risks is minimised", at_least=1e-4, at_most=0.9999
    )
    burnin: int = hp(
        2500, power(10, 2.5, 3.5, integer=True), "steps on the mean risk before the quantile", at_least=0, steps=True
    )
    eqrm_lr: float = hp(1e-6, power(10, -7, -5), "learning rate after the burn-in", at_least=0.0)
    implicit: bool = hp(False, fixed(), "repair: the gradient of the quantile itself instead of the published one")


@register(
    "eqrm",
    title="EQRM",
    family="dg",
    paper="Eastwood et al., Probable Domain Generalization via Quantile Risk Minimization, NeurIPS 2022, "
    "arXiv:2207.09944",
    idea="minimise a high quantile of the distribution of risks over domains",
)
class EQRM(Method):
    """The mean risk during the burn-in, then a quantile of a Gaussian kernel density estimate of the domains' risks.

    Adam starts afresh at the end of the burn-in with the rate `eqrm_lr`.
    """

    Config = EQRMConfig
    config: EQRMConfig
    repairs: ClassVar[tuple[str, ...]] = (
        "The published gradient takes the quantile's place between its two bounds as fixed, so that it flows only "
        "through the smallest risk, the largest risk and the kernel width. `implicit=True` gives the gradient of the "
        "quantile itself (implicit function theorem).",
        "The published search draws the burn-in as a fraction, which no step equals, so that Adam is never "
        "made afresh; here it is drawn as a whole number.",
        "Equal risks have a kernel width of 0; it is kept off 0, so that loss and gradient stay finite.",
    )

    def before_step(self, index: int) -> None:
        """A fresh Adam at the end of the burn-in."""
        super().before_step(index)
        if index == self.config.burnin:
            self.reset_optimizer(lr=self.config.eqrm_lr)

    def phase(self, index: int) -> Hashable:
        """Burn-in or quantile."""
        return index < self.config.burnin

    def loss(self, batch: Batch) -> Losses:
        """Mean or quantile of the domains' risks."""
        risks = batch.by_domain(cross_entropy(self.network(batch.x), batch.y, reduction="none")).mean(1)
        if self.phase(self.step_index):
            total = risks.mean()
        else:
            total = kde_quantile(risks, self.config.quantile, self.config.implicit)
        return Losses(total, {"loss": total})

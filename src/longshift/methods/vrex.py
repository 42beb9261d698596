"""VREx: variance risk extrapolation (Krueger et al. 2021)."""

from __future__ import annotations

from typing import ClassVar

from torch.nn.functional import cross_entropy

from longshift.losses import spread
from longshift.methods.base import AnnealedMethod, Annealing, Batch, Losses
from longshift.methods.config import MethodConfig, hp, power
from longshift.methods.registry import register


class VRExConfig(MethodConfig):
    """Hyper-parameters of VREx."""

    vrex_lambda: float = hp(10.0, power(10, -1, 5), "weight of the variance after annealing", at_least=0.0)
    anneal: int = hp(
        500,
        power(10, 0, 4, integer=True),
        "step at which the weight changes from 1 to vrex_lambda",
        at_least=0,
        steps=True,
    )


@register(
    "vrex",
    title="VREx",
    family="dg",
    row=10,
    paper="Krueger et al., Out-of-Distribution Generalization via Risk Extrapolation, ICML 2021, arXiv:2003.00688",
    idea="penalize the variance of the risks over domains",
    formula=r"\frac{1}{D} \sum_d R_d + \lambda \, \mathrm{Var}_d \, R_d",
    use="If domains should be equally good; the simplest invariance penalty.",
)
class VREx(AnnealedMethod):
    """Mean risk plus a weight times the population variance of the domains' risks.

    The weight is 1 up to step `anneal`, then `vrex_lambda`, and Adam is reset there.
    """

    Config = VRExConfig
    config: VRExConfig
    repairs: ClassVar[tuple[str, ...]] = (
        "As published, `nll` is the risk of the last domain only; `mean_nll` is the mean risk of all domains.",
    )

    def annealing(self) -> Annealing:
        """Return weight 1, then vrex_lambda."""
        return Annealing(self.config.anneal, 1.0, self.config.vrex_lambda)

    def loss(self, batch: Batch) -> Losses:
        """Compute mean risk plus the weighted variance of the risks."""
        risks = batch.by_domain(cross_entropy(self.network(batch.x), batch.y, reduction="none")).mean(1)
        mean, penalty = risks.mean(), spread(risks)
        total = mean + self.penalty_weight * penalty
        return Losses(total, {"loss": total, "nll": risks[-1], "mean_nll": mean, "penalty": penalty})

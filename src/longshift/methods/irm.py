"""IRM: invariant risk minimization (Arjovsky et al. 2019)."""

from __future__ import annotations

from torch.nn.functional import cross_entropy

from longshift.losses import IRMPenalty
from longshift.methods.base import AnnealedMethod, Annealing, Batch, Losses
from longshift.methods.config import MethodConfig, hp, power
from longshift.methods.registry import register


class IRMConfig(MethodConfig):
    """Hyper-parameters of IRM."""

    irm_lambda: float = hp(1e2, power(10, -1, 5), "weight of the penalty after annealing", at_least=0.0)
    anneal: int = hp(
        500,
        power(10, 0, 4, integer=True),
        "step at which the weight changes from 1 to irm_lambda",
        at_least=0,
        steps=True,
    )


@register(
    "irm",
    title="IRM",
    family="dg",
    row=2,
    paper="Arjovsky et al., Invariant Risk Minimization, 2019, arXiv:1907.02893",
    idea="learn one classifier that is optimal in every domain: penalize the slope of its risk in each domain",
    formula=r"\frac{1}{D} \sum_d R_d + \lambda \, \frac{1}{D} \sum_d \left( \frac{\partial R_d(w \cdot "
    r"f)}{\partial w} \Big|_{w=1} \right)^2",
    use="To compare with invariance penalties. It collapsed in some of our runs; watch the loss.",
)
class IRM(AnnealedMethod):
    """Cross-entropy plus the squared derivative of each domain's risk with respect to a factor on the logits.

    The product of the derivatives over even and odd samples is an unbiased estimate of the square. The weight is 1 up
    to step `anneal`, then `irm_lambda`, and Adam is reset there.
    """

    Config = IRMConfig
    config: IRMConfig

    def build(self) -> None:
        """Add the penalty."""
        super().build()
        self.irm = IRMPenalty(self.problem.domains)

    def annealing(self) -> Annealing:
        """Return weight 1, then irm_lambda."""
        return Annealing(self.config.anneal, 1.0, self.config.irm_lambda)

    def loss(self, batch: Batch) -> Losses:
        """Compute mean risk plus the weighted mean penalty over domains."""
        logits = self.network(batch.x)
        risk = cross_entropy(logits, batch.y)
        penalty = self.irm(logits, batch.y, batch.d)
        total = risk + self.penalty_weight * penalty
        return Losses(total, {"loss": total, "nll": risk, "penalty": penalty})

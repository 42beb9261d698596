"""GroupDRO: group distributionally robust optimization (Sagawa et al. 2020)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from longshift.methods.base import Batch, Losses, Method
from longshift.methods.config import MethodConfig, hp, power
from longshift.methods.registry import register


class GroupDROConfig(MethodConfig):
    """Hyper-parameters of GroupDRO."""

    eta: float = hp(1e-2, power(10, -3, -1), "step size of the domain weights", at_least=0.0)


@register(
    "groupdro",
    title="GroupDRO",
    family="dg",
    row=3,
    paper="Sagawa et al., Distributionally Robust Neural Networks for Group Shifts, ICLR 2020, arXiv:1911.08731",
    idea="weight domains by their exponentiated risk, so that the worst domain counts most",
    formula=r"\sum_d q_d R_d , \qquad q_d \propto q_d \, e^{\eta R_d}",
    use="If the worst training domain matters most and the domains are similarly hard.",
)
class GroupDRO(Method):
    """Weighted mean of the domains' risks; each step multiplies the weights by exp(eta * risk) and normalizes them."""

    Config = GroupDROConfig
    config: GroupDROConfig
    q: Tensor  # (domains,) the weights

    def build(self) -> None:
        """Add the domain weights, initially equal."""
        self.register_buffer("q", torch.ones(self.problem.domains))

    def loss(self, batch: Batch) -> Losses:
        """Compute the weighted risk, and update the weights."""
        risks = batch.by_domain(cross_entropy(self.network(batch.x), batch.y, reduction="none")).mean(1)
        # q * exp(eta * risk), normalized; in logarithms, so that a large risk cannot overflow.
        q = torch.softmax(self.q.log() + self.config.eta * risks.detach(), 0)
        self.q.copy_(q)
        total = (q * risks).sum()
        return Losses(total, {"loss": total})

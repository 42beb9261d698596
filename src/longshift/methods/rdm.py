"""RDM: risk distribution matching (Nguyen et al. 2024)."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import cross_entropy

from longshift.losses import RISK_GAMMAS, mmd
from longshift.methods.base import AnnealedMethod, Annealing, Batch, Losses, scalar_buffer
from longshift.methods.config import MethodConfig, choice, fixed, hp, int_uniform, power, uniform, with_default
from longshift.methods.registry import register


class RDMConfig(MethodConfig):
    """Hyper-parameters of RDM."""

    lr: float = hp(
        5e-5,
        power(10, -4.5, -4),
        "learning rate of Adam before annealing",
        at_least=0.0,
        variants={"small": (1e-3, power(10, -4.5, -2.5))},
    )
    weight_decay: float = hp(
        0.0, power(10, -8, -5), "L2 penalty added to the gradient", at_least=0.0, variants={"small": (0.0, fixed())}
    )
    dropout: float = with_default(
        MethodConfig,
        "dropout",
        0.0,
        space=choice(0.0, 0.003),
        variants={"DomainNet": (0.0, choice(0.0, 0.003, 0.03))},
    )
    rdm_lambda: float = hp(
        5.0,
        uniform(0.1, 10),
        "weight of the matching penalty after annealing",
        at_least=0.0,
        variants={"PACS": (5.0, uniform(1, 10)), "DomainNet": (0.5, uniform(0.1, 1))},
    )
    anneal: int = hp(
        1500,
        int_uniform(800, 2700),
        "step from which the penalties are used",
        at_least=0,
        variants={"DomainNet": (2400, int_uniform(1500, 3000))},
        steps=True,
    )
    variance_weight: float = hp(
        0.004,
        uniform(0.001, 0.007),
        "weight of the variances after annealing",
        at_least=0.0,
        variants={"OfficeHome": (0.0, fixed()), "DomainNet": (0.0, fixed())},
    )
    rdm_lr: float = hp(1.5e-5, uniform(8e-6, 2e-5), "learning rate after annealing", at_least=0.0)


def _variance(losses: Tensor) -> Tensor:
    """Compute the variance with divisor n - 1; that of a single loss is 0."""
    return losses.var(correction=min(1, len(losses) - 1))


@register(
    "rdm",
    title="RDM",
    family="dg",
    row=14,
    paper="Nguyen et al., Domain Generalisation via Risk Distribution Matching, WACV 2024, arXiv:2310.18598",
    idea="match the distribution of losses of the worst domain with that of all domains",
    formula=r"\frac{1}{D} \sum_d R_d + \lambda \, \mathrm{MMD}^2\left( \{\ell_i\}_{i \in d^*}, \{\ell_i\}_i "
    r"\right) + w \, \mathrm{Var} , \qquad d^* = \arg\max_d R_d",
    use="To compare with matching of losses instead of features.",
)
class RDM(AnnealedMethod):
    """Mean risk, plus the MMD between the losses of the worst domain and those of all domains, plus their variances.

    Both weights are 0 up to step `anneal`, where Adam is reset with learning rate `rdm_lr`. The worst domain has the
    largest risk on the batch.
    """

    Config = RDMConfig
    config: RDMConfig
    update_count: Tensor
    matching_weight: Tensor

    def build(self) -> None:
        """Add buffers for the reported numbers."""
        super().build()
        self.register_buffer("update_count", scalar_buffer())
        self.register_buffer("matching_weight", scalar_buffer(self.config.rdm_lambda))

    def annealing(self) -> Annealing:
        """Return both penalties off, then on."""
        return Annealing(self.config.anneal, 0.0, 1.0, self.config.rdm_lr)

    def before_step(self, index: int) -> None:
        """Count the updates, as the published report does."""
        super().before_step(index)
        self.update_count.fill_(index + 1)

    def loss(self, batch: Batch) -> Losses:
        """Compute mean risk plus the penalties."""
        everyone = cross_entropy(self.network(batch.x), batch.y, reduction="none")
        by_domain = batch.by_domain(everyone)
        worst = by_domain.index_select(0, by_domain.mean(1).argmax(0, keepdim=True)).squeeze(0)
        matching = mmd(worst[:, None], everyone[:, None], RISK_GAMMAS)
        variance = _variance(everyone) + _variance(worst)
        risk = everyone.mean()
        penalty = self.config.rdm_lambda * matching + self.config.variance_weight * variance
        total = risk + self.penalty_weight * penalty
        terms = {
            "loss": total,
            "total_loss": total,
            "erm_loss": risk,
            "matching_penalty": matching,
            "variance_penalty": variance,
            "rdm_lambda": self.matching_weight,
            "update_count": self.update_count,
        }
        return Losses(total, terms)

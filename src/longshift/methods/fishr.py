"""Fishr: match the variance of gradients between domains (Rame et al. 2022)."""

from __future__ import annotations

from torch.nn.functional import cross_entropy

from longshift.losses import FishrPenalty, head_gradient_variance
from longshift.methods.base import AnnealedMethod, Annealing, Batch, Losses
from longshift.methods.config import MethodConfig, hp, int_uniform, power, uniform
from longshift.methods.registry import register


class FishrConfig(MethodConfig):
    """Hyper-parameters of Fishr."""

    fishr_lambda: float = hp(1000.0, power(10, 1, 4), "weight of the penalty after annealing", at_least=0.0)
    anneal: int = hp(1500, int_uniform(0, 5000), "step from which the penalty is used", at_least=0, steps=True)
    ema: float = hp(0.95, uniform(0.90, 0.99), "decay of the moving average of variances", at_least=0.0, at_most=0.9999)


@register(
    "fishr",
    title="Fishr",
    family="dg",
    row=12,
    paper="Rame et al., Fishr: Invariant Gradient Variances, ICML 2022, arXiv:2109.02934",
    idea="match the variance of the classifier's gradients per sample between domains",
    formula=r"\frac{1}{B} \sum_i \ell_i + \lambda \, \frac{1}{D} \sum_d \left\| v_d - \bar v \right\|^2 , \qquad "
    r"v_d = \mathrm{Var}_{i \in d} \, \nabla_w \ell_i",
    use="If domains differ in appearance: it matches gradients and costs hardly more than ERM.",
)
class Fishr(AnnealedMethod):
    """Cross-entropy plus the squared distance of each domain's gradient variance from the average domain's.

    Gradients are those of the linear head, in closed form. Their variances are smoothed by a moving average m that
    starts at 0 in the first step. The penalty uses m / (1 - ema), with past values as constants. Its weight is 0 up to
    step `anneal`, then `fishr_lambda`, and Adam is reset there.
    """

    Config = FishrConfig
    config: FishrConfig

    def build(self) -> None:
        """Add the penalty with its moving average."""
        super().build()
        problem, width = self.problem, self.network.feature_dim
        self.fishr = FishrPenalty(problem.domains, problem.classes, width, self.config.ema)

    def annealing(self) -> Annealing:
        """Return weight 0, then fishr_lambda."""
        return Annealing(self.config.anneal, 0.0, self.config.fishr_lambda)

    def loss(self, batch: Batch) -> Losses:
        """Compute mean risk plus the weighted penalty, and update the moving average."""
        features = self.network.features(batch.x)
        logits = self.network.classifier(features)
        risk = cross_entropy(logits, batch.y)
        # All domains have the same number of samples: their variances need no masks.
        variance = head_gradient_variance(batch.by_domain(features), batch.by_domain(logits), batch.by_domain(batch.y))
        penalty = self.fishr.smoothed(variance)
        total = risk + self.penalty_weight * penalty
        return Losses(total, {"loss": total, "nll": risk, "penalty": penalty})

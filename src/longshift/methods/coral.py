"""CORAL: correlation alignment of features between domains (Sun and Saenko 2016)."""

from __future__ import annotations

from torch.nn.functional import cross_entropy

from longshift.losses import CORALLoss
from longshift.methods.base import Batch, Losses, Method
from longshift.methods.config import MethodConfig, hp, power
from longshift.methods.registry import register


class CORALConfig(MethodConfig):
    """Hyper-parameters of CORAL."""

    gamma: float = hp(1.0, power(10, -1, 1), "weight of the alignment penalty", at_least=0.0)


@register(
    "coral",
    title="CORAL",
    family="dg",
    row=6,
    paper="Sun and Saenko, Deep CORAL, ECCV workshops 2016, arXiv:1607.01719",
    idea="align feature means and covariances between all pairs of domains",
    formula=r"\frac{1}{B} \sum_i \ell_i + \gamma \, \frac{2}{D (D - 1)} \sum_{d < e} \left( \overline{(\mu_d - "
    r"\mu_e)^2} + \overline{(C_d - C_e)^2} \right)",
    use="If domains differ in appearance and have nearly the same class frequencies.",
)
class CORAL(Method):
    """Cross-entropy plus `gamma` times the mean distance of first and second feature moments over domain pairs.

    As published, the term `loss` is the cross-entropy without the penalty; `penalty` is the unweighted distance.
    """

    Config = CORALConfig
    config: CORALConfig

    def build(self) -> None:
        """Add the penalty."""
        self.coral = CORALLoss(self.problem.domains)

    def loss(self, batch: Batch) -> Losses:
        """Compute cross-entropy plus the weighted distance of moments."""
        features = self.network.features(batch.x)
        risk = cross_entropy(self.network.classifier(features), batch.y)
        penalty = self.coral(features, batch.d)
        return Losses(risk + self.config.gamma * penalty, {"loss": risk, "penalty": penalty})

"""MMD: match feature distributions between domains with kernels (Li et al. 2018)."""

from __future__ import annotations

from torch.nn.functional import cross_entropy

from longshift.losses import MMDLoss
from longshift.methods.base import Batch, Losses, Method
from longshift.methods.config import MethodConfig, hp, power
from longshift.methods.registry import register


class MMDConfig(MethodConfig):
    """Hyper-parameters of MMD."""

    gamma: float = hp(1.0, power(10, -1, 1), "weight of the discrepancy penalty", at_least=0.0)


@register(
    "mmd",
    title="MMD",
    family="dg",
    row=7,
    paper="Li et al., Domain Generalization with Adversarial Feature Learning, CVPR 2018",
    idea="match feature distributions between all pairs of domains with a sum of Gaussian kernels",
    formula=r"\frac{1}{B} \sum_i \ell_i + \gamma \, \frac{2}{D (D - 1)} \sum_{d < e} \mathrm{MMD}^2(\phi_d, "
    r"\phi_e)",
    use="Like CORAL, with all moments instead of two: if class frequencies hardly differ between domains.",
)
class MMD(Method):
    """Cross-entropy plus `gamma` times the mean squared maximum mean discrepancy over domain pairs.

    The kernel is a sum of seven Gaussians, exp(-g D) with g from 1e-3 to 1e3. As published, the term
    `loss` is the cross-entropy without the penalty; `penalty` is the unweighted discrepancy.
    """

    Config = MMDConfig
    config: MMDConfig

    def build(self) -> None:
        """Add the penalty."""
        self.mmd = MMDLoss(self.problem.domains)

    def loss(self, batch: Batch) -> Losses:
        """Compute cross-entropy plus the weighted discrepancy."""
        features = self.network.features(batch.x)
        risk = cross_entropy(self.network.classifier(features), batch.y)
        penalty = self.mmd(features, batch.d)
        return Losses(risk + self.config.gamma * penalty, {"loss": risk, "penalty": penalty})

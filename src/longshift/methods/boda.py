"""BoDA: align domains and classes by distances that are balanced by group size."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from longshift.losses import BoDALoss, CORALLoss
from longshift.methods.base import Batch, Losses, Method
from longshift.methods.config import MethodConfig, choice, hp, int_uniform, power, uniform
from longshift.methods.registry import register


class BoDAConfig(MethodConfig):
    """Hyper-parameters of BoDA."""

    start_step: int = hp(
        500,
        choice(300, 400, 500, 600),
        "first step with the BoDA loss",
        at_least=0,
        variants={"DomainNet": (3000, choice(2000, 3000, 4000, 5000))},
        steps=True,
    )
    feat_update_freq: int = hp(
        120,
        int_uniform(100, 150),
        "steps between updates of the centroids",
        at_least=1,
        variants={"DomainNet": (2000, int_uniform(1500, 3000))},
        steps=True,
    )
    nu: float = hp(0.5, power(10, -0.5, 0), "exponent of the ratio of group sizes", at_least=0.0)
    weight: float = hp(0.1, power(10, -2, -0.5), "weight of the BoDA loss", at_least=0.0)
    temperature: float = hp(1.0, power(10, -1, 0.5), "temperature of the distances", at_least=1e-6)
    macro_weight: float = hp(1.0, power(10, -1, 1), "weight of the CORAL penalty between domains", at_least=0.0)
    momentum: float = hp(0.2, uniform(0, 0.4), "share of the old centroid kept in an update", at_least=0.0, at_most=1.0)


@register(
    "boda",
    title="BoDA",
    family="idg",
    row=22,
    paper="Yang, Wang and Katabi, On Multi-Domain Long-Tailed Recognition, ECCV 2022",
    idea="pull samples toward the centroids of their class in other domains, balanced by group size, plus CORAL",
    formula=r"\frac{1}{B} \sum_i \ell_i + \gamma \, \mathcal{L}_{CORAL} + \omega \, \mathcal{L}_{BoDA} , \qquad "
    r"\mathcal{L}_{BoDA} = - \log "
    r"\frac{e^{- \tilde d(\phi_i, \mu_{e, y_i})}}{\sum_{(e, k) \ne (d_i, y_i)} e^{- \tilde d(\phi_i, "
    r"\mu_{e, k})}}",
    use="If classes are frequent in some domains and rare in others, and training is long enough for its "
    "centroids (it starts after 500 steps).",
)
class BoDA(Method):
    """Cross-entropy, CORAL between domains and, from `start_step` on, the BoDA loss on class centroids.

    As published, centroids are zero until their first update, so before it all are equally far.
    """

    Config = BoDAConfig
    config: BoDAConfig
    repairs: ClassVar[tuple[str, ...]] = (
        "a class may be missing from a domain: such a group has no centroid and is left out of the loss "
        "(the published code needs every class in every domain)",
    )

    def build(self) -> None:
        """Add the two losses, one with the centroids of all (domain, class) groups."""
        c, counts = self.config, self.problem.counts_tensor(torch.int64)
        self.boda = BoDALoss(counts, self.network.feature_dim, nu=c.nu, temperature=c.temperature, momentum=c.momentum)
        self.coral = CORALLoss(self.problem.domains)

    def wants_features(self, index: int) -> bool:
        """Return True every `feat_update_freq` steps."""
        return index > 0 and index % self.config.feat_update_freq == 0

    def receive_features(self, features: Tensor, y: Tensor, d: Tensor) -> None:
        """Update the centroids."""
        self.boda.update(features, y, d)

    def phase(self, index: int) -> Hashable:
        """Return whether the BoDA loss is active."""
        return index >= self.config.start_step

    def loss(self, batch: Batch) -> Losses:
        """Compute cross-entropy + macro_weight * CORAL + weight * BoDA."""
        features = self.network.features(batch.x)
        risk = cross_entropy(self.network.classifier(features), batch.y)
        penalty = self.coral(features, batch.d)
        total = risk + self.config.macro_weight * penalty
        micro = torch.zeros_like(risk)
        if self.phase(self.step_index):
            micro = self.boda(features, batch.y, batch.d)
            total = total + self.config.weight * micro
        return Losses(total, {"loss": risk, "loss_boda": micro, "penalty": penalty})

"""TCRI: target conditioned representation independence (Salaudeen and Koyejo 2024), HSIC version."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from longshift.losses import class_hsic, classes_present
from longshift.methods.base import AnnealedMethod, Annealing, Batch, Losses
from longshift.methods.config import MethodConfig, fixed, hp, power
from longshift.methods.registry import register
from longshift.nn import Network, optim


class TCRIConfig(MethodConfig):
    """Hyper-parameters of TCRI; the released code has no ranges, so these are ours."""

    alpha: float = hp(1.0, power(10, -2, 1), "weight of the domain-specific cross-entropy", at_least=0.0)
    beta: float = hp(1.0, power(10, -1, 2), "weight of the dependence penalty after annealing", at_least=0.0)
    anneal: int = hp(
        500, power(10, 0, 4, integer=True), "step at which the weight changes from 1 to beta", at_least=0, steps=True
    )
    train_spurious: bool = hp(False, fixed(), "repair: keep training the spurious layers after annealing")


class GeneralPredictor(nn.Module):
    """The network with the domain-general layer between features and classifier."""

    def __init__(self, network: Network, general: nn.Linear) -> None:
        super().__init__()
        self.network, self.general = network, general

    def forward(self, x: Tensor) -> Tensor:
        """Logits (B, classes)."""
        logits: Tensor = self.network.classifier(self.general(self.network.features(x)))
        return logits


@register(
    "tcri",
    title="TCRI",
    family="dg",
    row=16,
    paper="Salaudeen and Koyejo, Causally Inspired Regularization Enables Domain General Representations, "
    "AISTATS 2024, arXiv:2404.16277",
    idea="split features into a domain-general and a spurious part that are independent given the class",
    formula=r"\frac{1}{D} \sum_d R_d + \alpha \, \frac{1}{D} \sum_d R_d^{spec} + \beta \, \frac{1}{D} \sum_{d,k} "
    r"\mathrm{HSIC}(\phi^{gen}, \phi^{spec} \mid d, k)",
    use="To compare with methods that separate domain-general from domain-specific features.",
)
class TCRI(AnnealedMethod):
    """Two linear maps of the features, kept independent given class and domain by an HSIC penalty.

    The classifier uses the domain-general part; one classifier per domain uses both parts. The weight of the penalty
    is 1 up to step `anneal`, then `beta`, and Adam is reset there.
    """

    Config = TCRIConfig
    config: TCRIConfig
    repairs: ClassVar[tuple[str, ...]] = (
        "The optimizer that the published code creates at the end of annealing omits the spurious layers, so they "
        "freeze there. `train_spurious=True` keeps training them.",
        "The published median of distances is undefined for a class whose samples coincide; such a class "
        "contributes 0.",
    )

    def build(self) -> None:
        """Add the two maps and one classifier per domain."""
        super().build()
        width = self.network.feature_dim
        self.general = nn.Linear(width, width)
        self.spurious = nn.Linear(width, width)
        self.spurious_classifiers = nn.ModuleList(
            nn.Linear(2 * width, self.problem.classes) for _ in range(self.problem.domains)
        )

    def make_optimizers(self) -> dict[str, torch.optim.Optimizer]:
        """Create one Adam for the layers that predict and one for the spurious layers, which may stop earlier."""
        spurious = [*self.spurious.parameters(), *self.spurious_classifiers.parameters()]
        groups = {"main": [*self.network.parameters(), *self.general.parameters()], "spurious": spurious}
        return {name: optim.adam(group, self.config.lr, self.config.weight_decay) for name, group in groups.items()}

    def annealing(self) -> Annealing:
        """Return weight 1, then beta."""
        return Annealing(self.config.anneal, 1.0, self.config.beta)

    def phase(self, index: int) -> Hashable:
        """Return whether the spurious layers are trained."""
        return self.config.train_spurious or index < self.config.anneal

    def predictor(self) -> nn.Module:
        """Return the network with the domain-general layer."""
        return GeneralPredictor(self.network, self.general)

    def loss(self, batch: Batch) -> Losses:
        """Compute the risk of the general part, that of both parts per domain, and their dependence given the class."""
        features = self.network.features(batch.x)
        general, spurious = self.general(features), self.spurious(features)
        risk = cross_entropy(self.network.classifier(general), batch.y)
        # One product for all domains: the rows of each domain use its classifier.
        layers = [layer for layer in self.spurious_classifiers if isinstance(layer, nn.Linear)]
        weight, bias = torch.stack([x.weight for x in layers]), torch.stack([x.bias for x in layers])
        both = batch.by_domain(torch.cat([general, spurious], 1))
        specific = cross_entropy((both @ weight.mT + bias[:, None]).flatten(0, 1), batch.y)
        y, classes = batch.by_domain(batch.y), self.problem.classes
        dependence = class_hsic(batch.by_domain(general), batch.by_domain(spurious), y, classes)
        penalty = (dependence / (classes_present(y, classes) * batch.per_domain)).mean()
        total = risk + self.config.alpha * specific + self.penalty_weight * penalty
        return Losses(total, {"loss": total, "nll": risk, "tic_nll": specific, "tcri_penalty": penalty})

    def step(self, batch: Batch) -> dict[str, Tensor]:
        """Update the layers that are being trained."""
        losses = self.loss(batch)
        for chosen in self.optimizers.values():
            chosen.zero_grad(set_to_none=True)
        losses.total.backward()
        self.optimizers["main"].step()
        if self.phase(self.step_index):
            self.optimizers["spurious"].step()
        return {name: value.detach() for name, value in losses.terms.items()}

"""DANN: features from which a discriminator cannot recognize the domain."""

from __future__ import annotations

from collections.abc import Hashable

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from longshift.methods.base import Batch, Method
from longshift.methods.config import MethodConfig, choice, fixed, hp, power, unused
from longshift.methods.registry import register
from longshift.nn import MLP, gradients, optim, set_gradients, trainable

SMALL_LR = (1e-3, power(10, -4.5, -2.5))


class DANNConfig(MethodConfig):
    """Hyper-parameters of DANN; each player has its own learning rate and weight decay."""

    lr: float = unused("lr", "lr_g for the network and lr_d for the discriminator")
    weight_decay: float = unused(
        "weight_decay", "weight_decay_g for the network and weight_decay_d for the discriminator"
    )
    dann_lambda: float = hp(1.0, power(10, -2, 2), "weight of the adversarial loss (lambda)", at_least=0.0)
    weight_decay_d: float = hp(0.0, power(10, -6, -2), "weight decay of the discriminator", at_least=0.0)
    d_steps_per_g_step: int = hp(
        1, power(2, 0, 3, integer=True), "discriminator steps per step of the network", at_least=0
    )
    grad_penalty: float = hp(
        0.0,
        power(10, -2, 1),
        "weight of the squared gradient of the domain loss at the features",
        at_least=0.0,
    )
    beta1: float = hp(
        0.5, choice(0.0, 0.5), "first beta of both Adams (the second is 0.9)", at_least=0.0, at_most=0.999
    )
    mlp_width: int = hp(256, power(2, 6, 10, integer=True), "width of the discriminator", at_least=1)
    mlp_depth: int = hp(3, choice(3, 4, 5), "linear layers of the discriminator", at_least=2)
    mlp_dropout: float = hp(0.0, choice(0.0, 0.1, 0.5), "dropout inside the discriminator", at_least=0.0, at_most=0.95)
    lr_g: float = hp(
        5e-5, power(10, -5, -3.5), "learning rate of the network", at_least=0.0, variants={"small": SMALL_LR}
    )
    lr_d: float = hp(
        5e-5, power(10, -5, -3.5), "learning rate of the discriminator", at_least=0.0, variants={"small": SMALL_LR}
    )
    weight_decay_g: float = hp(
        0.0, power(10, -6, -2), "weight decay of the network", at_least=0.0, variants={"small": (0.0, fixed())}
    )


@register(
    "dann",
    title="DANN",
    family="dg",
    row=8,
    paper="Ganin et al., Domain-Adversarial Training of Neural Networks, JMLR 2016",
    idea="train features against a domain discriminator, in alternating steps",
    formula=r"\min_{f} \max_{g} \; \frac{1}{B} \sum_i \ell_i - \lambda \, \frac{1}{B} \sum_i \ell\left( g(\phi_i),"
    r" d_i \right)",
    use="To compare with adversarial training; it is sensitive to its hyper-parameters.",
)
class DANN(Method):
    """The discriminator and the network (featurizer and classifier) take turns, each with its own Adam."""

    Config = DANNConfig
    config: DANNConfig

    def build(self) -> None:
        """Add the domain discriminator."""
        hidden = [self.config.mlp_width] * (self.config.mlp_depth - 1)
        self.discriminator = MLP([self.network.feature_dim, *hidden, self.problem.domains], self.config.mlp_dropout)

    def make_optimizers(self) -> dict[str, torch.optim.Optimizer]:
        """Create one Adam per player."""
        c, betas = self.config, (self.config.beta1, 0.9)
        return {
            "generator": optim.adam(trainable(self.network), c.lr_g, c.weight_decay_g, betas),
            "discriminator": optim.adam(trainable(self.discriminator), c.lr_d, c.weight_decay_d, betas),
        }

    def phase(self, index: int) -> Hashable:
        """Return whose turn it is; as published, the count starts at one."""
        turns = self.config.d_steps_per_g_step
        return "discriminator" if (index + 1) % (1 + turns) < turns else "generator"

    def domain_loss(self, features: Tensor, batch: Batch) -> Tensor:
        """Compute the cross-entropy of the discriminator, with the gradient penalty."""
        each = cross_entropy(self.discriminator(features), batch.d, reduction="none")
        loss = each.mean()
        if self.config.grad_penalty:
            (slope,) = torch.autograd.grad(each.sum(), [features], create_graph=True)
            loss = loss + self.config.grad_penalty * slope.square().sum(1).mean()
        return loss

    def step(self, batch: Batch) -> dict[str, Tensor]:
        """Update the player whose turn it is."""
        if self.phase(self.step_index) == "discriminator":
            with torch.no_grad():
                features = self.network.features(batch.x)
            # The gradient penalty needs gradients of the features, though the featurizer is not updated.
            features.requires_grad_(self.config.grad_penalty > 0)
            disc_loss = self.domain_loss(features, batch)
            self.minimize(disc_loss, "discriminator")
            return {"disc_loss": disc_loss.detach()}
        features = self.network.features(batch.x)
        disc_loss = self.domain_loss(features, batch)
        class_loss = cross_entropy(self.network.classifier(features), batch.y)
        gen_loss = class_loss - self.config.dann_lambda * disc_loss
        weights = trainable(self.network)
        set_gradients(weights, gradients(gen_loss, weights))
        self.optimizers["generator"].step()
        return {"gen_loss": gen_loss.detach()}

"""GINIDG: a generator of additional features for rare classes, with domain-adversarial training."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from longshift.methods.base import Batch, Method, scalar_buffer
from longshift.methods.config import MethodConfig, fixed, hp
from longshift.methods.registry import register
from longshift.nn import MLP, gradients, reverse_gradient, set_gradients, trainable


class GINIDGConfig(MethodConfig):
    """Constants of GINIDG; none is searched."""

    recon_end: int = hp(1000, fixed(), "steps in which the generator learns to reconstruct", at_least=0, steps=True)
    zdim: int = hp(64, fixed(), "size of the generator's latent vector", at_least=1)
    sample_size: int = hp(
        0, fixed(), "features generated per latent mean; 0 means twice the number of domains", at_least=0
    )
    grl_weight: float = hp(1.0, fixed(), "largest strength of the gradient reversals", at_least=0.0)
    gdisc_hidden: int = hp(256, fixed(), "width of the discriminator of real and generated features", at_least=1)
    disc_hidden_1: int = hp(1024, fixed(), "first width of the domain discriminator", at_least=1)
    disc_hidden_2: int = hp(1024, fixed(), "second width of the domain discriminator", at_least=1)
    disc_dropout: float = hp(0.5, fixed(), "dropout inside both discriminators", at_least=0.0, at_most=0.95)


@register(
    "ginidg",
    title="GINIDG",
    family="idg",
    row=21,
    paper="Xia et al., Generative Inference Network for Imbalanced Domain Generalization, IEEE TIP 2023",
    idea="generate domain-invariant features with a variational generator, with domain-adversarial training",
    formula=r"\frac{1}{B} \sum_i \ell_i + \mathcal{L}_{gen} + \mathcal{L}_{adv} , \qquad \hat\phi = G(\zeta) , \; "
    r"\zeta \sim \mathcal{N}(\mu_k, \sigma_k)",
    use="To compare with generated features for rare classes; it needs a long warm-up of its generator.",
)
class GINIDG(Method):
    """A network with a reversed domain discriminator, and a generator with a reversed real/generated discriminator.

    For `recon_end` steps the generator only learns to reconstruct features. Afterwards it learns to deceive its
    discriminator, and the network also learns from the generated features. As published, generated rows take the labels
    of the batch in turn, though each is made from one row of every domain.
    """

    Config = GINIDGConfig
    config: GINIDGConfig
    strength: Tensor
    repairs: ClassVar[tuple[str, ...]] = (
        "any number of domains is supported: the mean over all domains, and two generated rows per real one. The "
        "published code hard-codes three domains and six rows per mean, which is the same for three domains",
        "gradients that a phase does not use are zeros, not missing, so that Adam's moments and weight decay continue",
    )

    def build(self) -> None:
        """Add the generator and both discriminators."""
        c, width = self.config, self.network.feature_dim
        self.generator = nn.ModuleDict(
            {
                "mean": nn.Linear(width, c.zdim),
                "log_variance": nn.Linear(width, c.zdim),
                "decoder": nn.Linear(c.zdim, width),
            }
        )
        self.real_discriminator = MLP([width, c.gdisc_hidden, 2], c.disc_dropout)
        widths = [width, c.disc_hidden_1, c.disc_hidden_2, self.problem.domains]
        self.domain_discriminator = MLP(widths, c.disc_dropout)
        self.register_buffer("strength", scalar_buffer())

    def before_step(self, index: int) -> None:
        """Increase the strength of the reversals from 0 to `grl_weight`."""
        super().before_step(index)
        grown = 2 / (1 + math.exp(-10 * index / self.problem.steps)) - 1
        self.strength.fill_(self.config.grl_weight * grown)

    def phase(self, index: int) -> Hashable:
        """Return whether reconstruction is over."""
        return "generate" if index >= self.config.recon_end else "reconstruct"

    def generate(self, features: Tensor, batch: Batch) -> Tensor:
        """Generate features from the mean over domains, row by row: (copies * per_domain, F)."""
        copies = self.config.sample_size or 2 * batch.domains
        pooled = batch.by_domain(features).mean(0)
        mean = self.generator["mean"](pooled).repeat(copies, 1)
        deviation = (1e-8 + self.generator["log_variance"](pooled).exp()).sqrt().repeat(copies, 1)
        latent = mean + self.draws.normal(*mean.shape) * deviation
        generated: Tensor = self.generator["decoder"](latent.relu())
        return generated

    def step(self, batch: Batch) -> dict[str, Tensor]:
        """Take one Adam step; the parts of the model have different losses."""
        network, generator = trainable(self.network), trainable(self.generator)
        domain, real = trainable(self.domain_discriminator), trainable(self.real_discriminator)
        features = self.network.features(batch.x)
        class_loss = cross_entropy(self.network.classifier(features), batch.y)
        domain_loss = cross_entropy(self.domain_discriminator(reverse_gradient(features, self.strength)), batch.d)
        generated = self.generate(features, batch)
        partner = torch.arange(len(generated), device=batch.y.device) % len(batch)
        made_loss = cross_entropy(self.network.classifier(generated), batch.y.index_select(0, partner))
        loss = class_loss + domain_loss
        terms = {"loss": loss, "class_loss": class_loss, "domain_loss": domain_loss, "generated_loss": made_loss}

        if self.phase(self.step_index) == "reconstruct":
            target = features.detach().index_select(0, partner)
            distance = torch.linalg.vector_norm(generated - target, dim=1).mean()
            for_generator = gradients(distance + made_loss, generator, retain_graph=True)
            of_network = gradients(loss, [*network, *domain])
            for_real = [torch.zeros_like(w) for w in real]
            terms["reconstruction"] = distance
        else:
            # One pass over real rows (label 0) and generated rows (label 1) with reversed gradient.
            rows = torch.cat([features.detach(), reverse_gradient(generated, self.strength)])
            label = (torch.arange(len(rows), device=rows.device) >= len(batch)).long()
            real_loss = cross_entropy(self.real_discriminator(rows), label)
            first = gradients(real_loss, [*generator, *real], retain_graph=True)
            second = gradients(loss + made_loss, [*network, *domain, *generator])
            of_network, made = second[: -len(generator)], second[-len(generator) :]
            for_generator = list(torch._foreach_add(first[: len(generator)], made))
            for_real = first[len(generator) :]
            terms["real_loss"] = real_loss

        set_gradients([*network, *domain, *generator, *real], [*of_network, *for_generator, *for_real])
        self.optimizers["main"].step()
        return {name: value.detach() for name, value in terms.items()}

"""SAMALTDG: domain-adversarial training with sharpness-aware minimization of the classification loss.

No code of this method was published (its repository is empty); this implementation follows its description.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from longshift.losses import maximum_square_loss
from longshift.methods.base import Batch, Method
from longshift.methods.config import MethodConfig, hp, power
from longshift.methods.registry import register
from longshift.nn import MLP, gradients, reverse_gradient, set_gradients, sharpness_aware_gradients, trainable

HIDDEN = 256  # as DANN's discriminator by default


class SAMALTDGConfig(MethodConfig):
    """Hyper-parameters of SAMALTDG."""

    rho: float = hp(0.05, power(10, -2, -0.5), "length of the ascent step on the task loss", at_least=0.0)
    lambda_adv: float = hp(0.1, power(10, -2, 0), "strength of the reversed domain loss", at_least=0.0)
    lambda_ent: float = hp(0.1, power(10, -2, 0), "strength of the reversed per-domain class loss", at_least=0.0)
    lambda_square: float = hp(0.1, power(10, -2, 0), "weight of the maximum square loss", at_least=0.0)


@register(
    "samaltdg",
    title="SAMALTDG",
    family="idg",
    row=23,
    paper="Su et al., Sharpness-Aware Model-Agnostic Long-Tailed Domain Generalization, AAAI 2024",
    idea="SAM on the task loss, reversed domain and per-domain class losses, maximum square loss",
    formula=r"\max_{\|\epsilon\| \le \rho} \mathcal{L}_{task}(\theta + \epsilon) - \lambda_{adv} \mathcal{L}_{dom}"
    r" - \lambda_{ent} \mathcal{L}_{cls} - \frac{\lambda_{sq}}{2 B} \sum_{i, k} p_{i, k}^2",
    use="To compare with flat minima; it has no published code, so our version follows the paper's description.",
)
class SAMALTDG(Method):
    """Four losses: task (SAM), domain and per-domain class (both reversed), maximum square.

    The gradient of the task loss, cross-entropy, is taken at distance `rho` along its slope (SAM), all others at the
    weights. A domain discriminator and one linear classifier per domain (entropy regularization, Zhao et al. 2020,
    which makes P(class | features) agree across domains) learn from the features. The features receive their gradients
    reversed, with the factors `lambda_adv` and `lambda_ent`. The maximum square loss has the weight `lambda_square`.
    The perturbation applies to the network, not to the adversaries. One Adam updates everything. There is no published
    code; details that the paper leaves open are our choice.
    """

    Config = SAMALTDGConfig
    config: SAMALTDGConfig

    def build(self) -> None:
        """Add the domain discriminator and a classifier per domain."""
        width, domains = self.network.feature_dim, self.problem.domains
        self.discriminator = MLP([width, HIDDEN, HIDDEN, domains])
        # One layer holds the classifiers of all domains: block d belongs to domain d.
        self.domain_classifiers = nn.Linear(width, domains * self.problem.classes)

    def domain_class_logits(self, features: Tensor, batch: Batch) -> Tensor:
        """Apply to each row the classifier of its domain: (B, classes)."""
        layer, domains = self.domain_classifiers, batch.domains
        weight = layer.weight.view(domains, -1, layer.in_features).transpose(1, 2)
        return torch.baddbmm(layer.bias.view(domains, 1, -1), batch.by_domain(features), weight).flatten(0, 1)

    def step(self, batch: Batch) -> dict[str, Tensor]:
        """Take one step from two passes: at the weights, and for the task loss at the sharpest nearby point."""
        c, network = self.config, trainable(self.network)
        heads = trainable(self.discriminator, self.domain_classifiers)
        features = self.network.features(batch.x)
        logits = self.network.classifier(features)
        task = cross_entropy(logits, batch.y)
        domain = cross_entropy(self.discriminator(reverse_gradient(features, c.lambda_adv)), batch.d)
        reversed_features = reverse_gradient(features, c.lambda_ent)
        entropy = cross_entropy(self.domain_class_logits(reversed_features, batch), batch.y)
        square = maximum_square_loss(logits)

        up = gradients(task, network, retain_graph=True)
        rest = gradients(domain + entropy + c.lambda_square * square, [*network, *heads])
        sharp, down = sharpness_aware_gradients(
            lambda: cross_entropy(self.network(batch.x), batch.y), network, up, c.rho
        )
        torch._foreach_add_(down, rest[: len(network)])
        set_gradients([*network, *heads], [*down, *rest[len(network) :]])
        self.optimizers["main"].step()
        terms = {"loss": task, "domain_loss": domain, "entropy_loss": entropy, "square_loss": square}
        return {"sharp_loss": sharp, **{name: value.detach() for name, value in terms.items()}}

"""SagNet: classify by content with randomized style, and make style useless to a second classifier."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from longshift.methods.base import Batch, Method
from longshift.methods.config import MethodConfig, hp, power
from longshift.methods.registry import register
from longshift.nn import gradients, optim, set_gradients, trainable

EPS = 1e-5


class SagNetConfig(MethodConfig):
    """Hyper-parameters of SagNet."""

    w_adv: float = hp(0.1, power(10, -2, 1), "weight of the adversarial loss on style", at_least=0.0)


def split_style(features: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Split features (B, F) into content (each row standardized) and style (mean and variance of each row)."""
    mean, var = features.mean(1, keepdim=True), features.var(1, keepdim=True)
    return (features - mean) / (var + EPS).sqrt(), mean, var


def join_style(content: Tensor, mean: Tensor, var: Tensor) -> Tensor:
    """Invert `split_style`."""
    return content * (var + EPS).sqrt() + mean


@register(
    "sagnet",
    title="SagNet",
    family="dg",
    row=9,
    paper="Nam et al., Reducing Domain Gap by Reducing Style Bias, CVPR 2021",
    idea="classify content under mixed styles, and train features against a style classifier",
    formula=r"\ell\left( c(\mathrm{content}_i, \mathrm{style}_j), y_i \right) + w \, \ell_{adv}\left( "
    r"s(\mathrm{style}_i) \right)",
    use="If domains differ in style (texture, color) and the step may take twice as long.",
)
class SagNet(Method):
    """Three updates per step: content (featurizer and classifier), style classifier, adversary (featurizer).

    The style and the adversary update use the same weights of the featurizer, so one forward pass serves both.
    """

    Config = SagNetConfig
    config: SagNetConfig

    def build(self) -> None:
        """Add the style classifier."""
        self.style_classifier = nn.Linear(self.network.feature_dim, self.problem.classes)

    def make_optimizers(self) -> dict[str, torch.optim.Optimizer]:
        """Create one Adam each for featurizer, classifier and style classifier."""
        parts = {
            "featurizer": self.network.featurizer,
            "content": self.network.classifier,
            "style": self.style_classifier,
        }
        c = self.config
        return {name: optim.adam(trainable(part), c.lr, c.weight_decay) for name, part in parts.items()}

    def update(self, loss: Tensor, *parts: tuple[str, nn.Module]) -> None:
        """Update only the named parts by the gradient of the loss."""
        weights = trainable(*(module for _, module in parts))
        set_gradients(weights, gradients(loss, weights))
        for name, _ in parts:
            self.optimizers[name].step()

    def step(self, batch: Batch) -> dict[str, Tensor]:
        """Take the content, style and adversary updates."""
        network, rows = self.network, len(batch)
        featurizer = ("featurizer", network.featurizer)

        content, mean, var = split_style(network.features(batch.x))
        own, other = self.draws.uniform(rows).unsqueeze(1), self.draws.permutation(rows)
        mixed_mean = own * mean + (1 - own) * mean.index_select(0, other)
        mixed_var = own * var + (1 - own) * var.index_select(0, other)
        loss_c = cross_entropy(network.classifier(join_style(content, mixed_mean, mixed_var)), batch.y)
        self.update(loss_c, featurizer, ("content", network.classifier))

        content, mean, var = split_style(network.features(batch.x))

        def swapped() -> Tensor:
            """Combine the style of each row with the content of another row; only the style has a gradient."""
            return join_style(content.detach().index_select(0, self.draws.permutation(rows)), mean, var)

        loss_s = cross_entropy(self.style_classifier(swapped().detach()), batch.y)
        self.update(loss_s, ("style", self.style_classifier))

        loss_adv = -self.config.w_adv * self.style_classifier(swapped()).log_softmax(1).mean()
        self.update(loss_adv, featurizer)
        return {"loss_c": loss_c.detach(), "loss_s": loss_s.detach(), "loss_adv": loss_adv.detach()}

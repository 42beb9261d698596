"""MixStyle (Zhou et al., ICLR 2021) on top of balanced softmax, as a plugin.

    longshift --plugin examples/mixstyle_method.py methods mixstyle
    longshift --plugin examples/mixstyle_method.py train --data digits --target ink --method mixstyle

The mean and standard deviation of a channel of an early feature map carry the style of an image. In training, MixStyle
replaces both by a mix with those of an image of another source domain; the network must then classify the same content
in a style between two domains. The style stage of longshift (`--set style=...`) does similar things to the pixels.

This file shows how a method changes the inside of any network: random numbers are drawn in `loss`, once per step, and
the stages of the network read them. Shapes are static and nothing is read on the host, so steps can be compiled and
captured in CUDA graphs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from longshift.errors import LongshiftError
from longshift.losses import BalancedSoftmaxLoss
from longshift.methods import Batch, Losses, Method, MethodConfig, choice, hp, register, uniform
from longshift.rng import Draws

EPS = 1e-6  # added to variances: a channel may be constant


class Drawn(NamedTuple):
    """The random numbers of one stage in one step."""

    partners: Tensor  # (B,) int64, the sample whose style is mixed in
    weight: Tensor  # (B,) in [0, 1], the share of the sample's own style
    used: Tensor  # (1,) bool, whether the stage mixes in this step


def draw_partners(draws: Draws, domains: int, per_domain: int) -> Tensor:
    """Shuffle a domain-major batch so that each sample gets a partner of another domain.

    Domains are rotated by a random number and the samples of a domain are permuted: each sample lends its style once.
    A batch of one domain is permuted.
    """
    order = draws.permutation(per_domain)
    if domains == 1:
        return order
    turn = draws.integers(np.array(1), np.array(domains), 1)
    other = (torch.arange(domains, device=order.device) + turn) % domains
    return (other[:, None] * per_domain + order).flatten()


def mix_style(maps: Tensor, drawn: Drawn) -> Tensor:
    """Mix the mean and standard deviation of each channel with those of the partner; no gradient flows through them.

    Args:
        maps: Feature maps (B, C, H, W).
        drawn: Random numbers.

    Returns:
        (B, C, H, W), in the dtype of `maps`; `maps` where the stage is not used in this step.

    Raises:
        LongshiftError: If `maps` have another shape.
    """
    if maps.dim() != 4:
        shape = tuple(maps.shape)
        raise LongshiftError(f"Expected feature maps (B, C, H, W), got {shape}. Use a convolutional network.")
    full = maps.to(torch.promote_types(maps.dtype, torch.float32))  # sums over a map need more than 8 bits
    variance, mean = torch.var_mean(full.detach(), (2, 3), correction=0, keepdim=True)
    deviation = (variance + EPS).sqrt()
    weight = drawn.weight.to(full.dtype)[:, None, None, None]
    mixed_mean = torch.lerp(mean[drawn.partners], mean, weight)
    mixed_deviation = torch.lerp(deviation[drawn.partners], deviation, weight)
    mixed = (full - mean) / deviation * mixed_deviation + mixed_mean
    return torch.where(drawn.used, mixed, full).to(maps.dtype)


class MixedStage(nn.Module):
    """A stage of a network that mixes its output in training mode, if random numbers were drawn for it."""

    drawn: Drawn | None

    def forward(self, *inputs: Tensor) -> Tensor:
        """Run the stage and mix, or return its output as it is."""
        maps: Tensor = super().forward(*inputs)
        return maps if self.drawn is None or not self.training else mix_style(maps, self.drawn)


MIXED: dict[type[nn.Module], type[nn.Module]] = {}


def mixed_class(kind: type[nn.Module]) -> type[nn.Module]:
    """Derive the class of a stage that mixes its output, once per kind."""
    if kind not in MIXED:
        MIXED[kind] = type(f"Mixed{kind.__name__}", (MixedStage, kind), {})
    return MIXED[kind]


def mix_output(stage: nn.Module) -> MixedStage:
    """Turn a stage into one that mixes its output; its parameters and their names stay the same.

    A forward hook would be shorter, but the compiler does not look at hooks when it reuses what it compiled: after a
    run of another method in the same process, the hook would be skipped without a word. It does look at classes.
    """
    stage.__class__ = mixed_class(type(stage))
    assert isinstance(stage, MixedStage)
    stage.drawn = None
    return stage


def early_stages(network: nn.Module, count: int) -> list[nn.Module]:
    """Find the modules whose outputs are mixed: the first stages of a convolutional network.

    Args:
        network: A network of timm or torchvision with `blocks`, `stages` or `layer1`, `layer2`, ..., or a plain
            `nn.Sequential`, whose stages end before each convolution but the first.
        count: Number of stages.

    Returns:
        The modules.

    Raises:
        LongshiftError: If the network does not have that many stages.
    """
    named = getattr(network, "blocks", getattr(network, "stages", None))
    if isinstance(named, nn.Sequential):
        found = list(named)
    elif isinstance(network, nn.Sequential):
        ends = [i - 1 for i, layer in enumerate(network) if isinstance(layer, nn.Conv2d)]
        found = [network[i] for i in ends if i > 0]
    else:
        found = [layer for i in range(1, 5) if (layer := getattr(network, f"layer{i}", None)) is not None]
    if len(found) < count:
        raise LongshiftError(
            f"Expected a convolutional network with at least {count} stages (`blocks`, `stages` or `layer1`, ...) for "
            f"MixStyle, got {type(network).__name__} with {len(found)}. Use another --backbone or --set mix_stages=N."
        )
    return found[:count]


class MixStyleConfig(MethodConfig):
    """Hyper-parameters of MixStyle; the defaults are those of its paper."""

    mix_probability: float = hp(
        0.5, uniform(0.3, 0.7), "probability that a stage mixes in a step", at_least=0.0, at_most=1.0
    )
    mix_alpha: float = hp(0.1, choice(0.1, 0.2, 0.3), "mixing weights are drawn from Beta(this, this)", at_least=1e-3)
    mix_stages: int = hp(
        3,
        choice(1, 2, 3),
        "number of stages after which styles are mixed",
        at_least=1,
        variants={"small": (2, choice(1, 2))},
    )


@register(
    "mixstyle",
    title="MixStyle",
    family="idg",
    paper="Zhou et al., Domain Generalization with MixStyle, ICLR 2021, arXiv:2104.02008",
    idea="balanced softmax; mix channel statistics of early feature maps across domains",
)
class MixStyle(Method):
    """BSoftmax on features whose style is mixed across domains; evaluation uses the plain network."""

    Config = MixStyleConfig
    config: MixStyleConfig

    def build(self) -> None:
        """Add the loss with the counts of each domain; let the first stages of the network mix their outputs."""
        self.criterion = BalancedSoftmaxLoss(self.problem.counts_tensor(torch.int64))
        self.stages = [mix_output(stage) for stage in early_stages(self.network.featurizer, self.config.mix_stages)]

    def draw(self, batch: Batch) -> Drawn:
        """Draw the random numbers of a stage."""
        config = self.config
        return Drawn(
            draw_partners(self.draws, batch.domains, batch.per_domain),
            self.draws.beta(config.mix_alpha, config.mix_alpha, len(batch)),
            self.draws.uniform(1) < config.mix_probability,
        )

    def loss(self, batch: Batch) -> Losses:
        """Compute the balanced softmax of a forward pass with mixed styles."""
        for stage in self.stages:
            stage.drawn = self.draw(batch)
        logits = self.network(batch.x)
        for stage in self.stages:
            stage.drawn = None  # other passes, such as those of evaluation, are not mixed
        total = self.criterion(logits, batch.y, batch.d)
        return Losses(total, {"loss": total})

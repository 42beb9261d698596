"""The style stage of the input pipeline: which images of a step are styled, how, and with which random numbers.

What styling does to an image is in `longshift.losses` (losses/style_mixing.py). Random numbers are drawn once per step
as tensors, so that a step can be captured as a CUDA graph and sees the same numbers on every device.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from longshift.losses import KERNELS_SHAPE, choose_partners, convolve_randomly, mix_amplitude, mix_statistics
from longshift.methods import MethodConfig
from longshift.rng import Draws

Apply = Callable[..., tuple[Tensor, Tensor]]
UNIFORMS = 5  # numbers per image that `Style` takes: partner, mixing coefficient, whether, which, kernel


@dataclass(frozen=True)
class Style:
    """What is done to the style of the training images; see `MethodConfig` for the meaning of each field."""

    kind: str  # amplitude, convolution, both, statistics
    amount: float = 1.0
    share: float = 1.0
    same_class: bool = False
    views: int = 1
    compiled: bool = False  # the same numbers in a few fused kernels

    @classmethod
    def of(cls, config: MethodConfig, compiled: bool = False) -> Style | None:
        """The style stage of a method's config; None where it is off."""
        if config.style == "none":
            return None
        return cls(
            config.style,
            config.style_amount,
            config.style_share,
            config.style_partner == "class",
            config.style_views,
            compiled,
        )


class Styled(NamedTuple):
    """Images (B, 3, H, W), and the domain (B,) whose style each image is mixed with: its own where it is not."""

    images: Tensor
    d: Tensor


def draw_styled(images: Tensor, y: Tensor, d: Tensor, center: Tensor, style: Style, draws: Draws) -> Styled:
    """Style a batch: images (B, 3, H, W) in [0, 1], classes and domains (B,), `center` (1, 3, 1, 1) the mean color."""
    u = draws.uniform(len(y), UNIFORMS)
    normal = draws.normal(*KERNELS_SHAPE) if style.kind in ("convolution", "both") else None
    # Tensors, because a compiled function would be compiled anew for each number.
    drawn = Drawn(u[:, 0], style.amount * u[:, 1], u[:, 2] < style.share, u[:, 3] < 0.5, u[:, 4], normal)
    apply = _compile(apply_style) if style.compiled else apply_style
    return Styled(*apply(images, y, d, center, drawn, style.kind, style.same_class))


class Drawn(NamedTuple):
    """The random numbers of a batch, (B,) each but for `normal`."""

    partner: Tensor  # in [0, 1), as `choose_partners` takes it
    amount: Tensor
    styled: Tensor  # bool, whether the image is styled at all
    amplitude: Tensor  # bool, of `both`: amplitude mixing instead of convolution
    kernel: Tensor  # in [0, 1), which of the kernels
    normal: Tensor | None  # of the shape KERNELS_SHAPE


def apply_style(
    images: Tensor, y: Tensor, d: Tensor, center: Tensor, drawn: Drawn, kind: str, same_class: bool
) -> tuple[Tensor, Tensor]:
    """`draw_styled` with given random numbers."""
    chosen = choose_partners(drawn.partner, y, d, same_class=same_class)
    mixed = torch.ones_like(drawn.styled)
    if kind == "statistics":
        result = mix_statistics(images, images[chosen], drawn.amount)
    elif kind == "amplitude":
        result = mix_amplitude(images, chosen, drawn.amount)
    else:
        assert drawn.normal is not None
        result = convolve_randomly(images, center, drawn.normal, drawn.kernel, drawn.amount)
        mixed = torch.zeros_like(mixed)
        if kind == "both":
            mixed = drawn.amplitude
            result = torch.where(mixed[:, None, None, None], mix_amplitude(images, chosen, drawn.amount), result)
    image = torch.where(drawn.styled[:, None, None, None], result, images)
    return image, torch.where(drawn.styled & mixed, d[chosen], d)


@functools.cache
def _compile(function: Apply) -> Apply:
    # Fourier transforms are called as they are, and what surrounds them is compiled: the warning asks for nothing.
    warnings.filterwarnings("ignore", "Torchinductor does not support code generation for complex operators")
    return torch.compile(function, dynamic=False)


def two_views(plain: Tensor, styled: Tensor, domains: int) -> Tensor:
    """Per-sample values of both views, domain-major: each domain's plain samples, then its styled ones."""
    parts = (values.unflatten(0, (domains, -1)) for values in (plain, styled))
    return torch.cat(list(parts), 1).flatten(0, 1)

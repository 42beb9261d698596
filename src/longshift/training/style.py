"""The style stage of the input pipeline: which images of a step are styled, how, and with which random numbers.

What styling does to an image is in `longshift.losses` (losses/style_mixing.py). Random numbers are drawn once per step
as tensors, so that a step can be captured as a CUDA graph and sees the same numbers on every device.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from longshift.losses import (
    KERNELS_SHAPE,
    choose_kernels,
    choose_partners,
    mix_amplitude,
    mix_statistics,
    random_convolution,
    random_kernels,
)
from longshift.methods import StyleConfig
from longshift.rng import Draws

Apply = Callable[..., tuple[Tensor, Tensor]]
UNIFORMS = 5  # numbers per image that `Drawn` is made from


class Styled(NamedTuple):
    """Images (B, 3, H, W), and the domain (B,) whose style each image is mixed with: its own where it is not."""

    images: Tensor
    d: Tensor


class Drawn(NamedTuple):
    """The random choices for a batch, (B,) each."""

    partner: Tensor  # in [0, 1), as `choose_partners` takes it; copies for a frozen network choose in another way
    amount: Tensor  # the mixing coefficient
    styled: Tensor  # bool, whether the image is styled at all
    mixed: Tensor  # bool, whether the style is that of the partner; else the image is convolved
    kernel: Tensor  # int64, which of the kernels

    @classmethod
    def of(cls, u: Tensor, style: StyleConfig, dtype: torch.dtype | None = None) -> Drawn:
        """The choices by uniform numbers (B, UNIFORMS); `dtype` is that of the amounts, by default that of `u`."""
        styled = u[:, 2] < style.share
        mixed = u[:, 3] < 0.5 if style.mix == "both" else torch.full_like(styled, style.has_partners)
        return cls(u[:, 0], style.amount * u[:, 1].to(dtype or u.dtype), styled, mixed, choose_kernels(u[:, 4]))


def draw_styled(
    images: Tensor, y: Tensor, d: Tensor, center: Tensor, style: StyleConfig, draws: Draws, compiled: bool = False
) -> Styled:
    """Style a batch: images (B, 3, H, W) in [0, 1], classes and domains (B,), `center` (1, 3, 1, 1) the mean color.

    `compiled` gives the same numbers in a few fused kernels.
    """
    # Tensors, because a compiled function would be compiled anew for each number.
    drawn = Drawn.of(draws.uniform(len(y), UNIFORMS), style)
    normal = draws.normal(*KERNELS_SHAPE) if style.has_kernels else None
    apply = _compile(apply_style) if compiled else apply_style
    return Styled(*apply(images, y, d, center, drawn, normal, style.mix, style.partner == "class"))


def apply_style(
    images: Tensor, y: Tensor, d: Tensor, center: Tensor, drawn: Drawn, normal: Tensor | None, kind: str,
    same_class: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """`draw_styled` with given random numbers."""
    chosen = choose_partners(drawn.partner, y, d, same_class=same_class)
    kernels = None if normal is None else random_kernels(normal)
    styled = mix_styles(images, center, drawn, chosen, kernels, kind)
    return styled, torch.where(drawn.styled & drawn.mixed, d[chosen], d)


def mix_styles(
    images: Tensor, center: Tensor, drawn: Drawn, partners: Tensor, kernels: Tensor | None, kind: str,
    styles: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Images after the style stage: `partners` (B,) are indices of `styles`, by default of the images themselves."""
    if kind == "statistics":
        result = mix_statistics(images, partners, drawn.amount, styles)
    elif kind == "amplitude":
        result = mix_amplitude(images, partners, drawn.amount, styles)
    else:
        assert kernels is not None
        result = random_convolution(images - center, kernels, drawn.kernel, drawn.amount) + center
        if kind == "both":
            mixed = mix_amplitude(images, partners, drawn.amount, styles)
            result = torch.where(drawn.mixed[:, None, None, None], mixed, result)
    return torch.where(drawn.styled[:, None, None, None], result, images)


@functools.cache
def _compile(function: Apply) -> Apply:
    # Fourier transforms are called as they are, and what surrounds them is compiled: the warning asks for nothing.
    warnings.filterwarnings("ignore", "Torchinductor does not support code generation for complex operators")
    return torch.compile(function, dynamic=False)


def two_views(plain: Tensor, styled: Tensor, domains: int) -> Tensor:
    """Per-sample values of both views, domain-major: each domain's plain samples, then its styled ones."""
    parts = (values.unflatten(0, (domains, -1)) for values in (plain, styled))
    return torch.cat(list(parts), 1).flatten(0, 1)

"""Style mixing: give a training image the style of another source domain, or a random one, and keep what it shows.

*Amplitude mixing* moves the amplitude of an image's Fourier transform towards that of a partner from another source
domain and keeps the phase, which carries the shapes (Yang & Soatto 2020, arXiv:2004.05498; Xu et al. 2021,
arXiv:2105.11120). *Random convolution* blends the image with itself under a random small kernel (Xu et al. 2021,
arXiv:2007.13003). *Statistics* moves the mean and standard deviation of each color channel towards the partner's: what
MixStyle (Zhou et al. 2021, arXiv:2104.02008) does to feature maps, on the pixels.

Every function is pure and has static shapes: random numbers come in as tensors, so that a step that uses them can be
captured as a CUDA graph and sees the same numbers on every device.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from longshift.methods import MethodConfig
from longshift.rng import Draws

KERNEL_SIZES = (1, 1, 3, 3, 5, 5)  # of the random kernels of a step; each image gets one of them
LARGEST = max(KERNEL_SIZES)
KERNELS_SHAPE = (len(KERNEL_SIZES), 3, 3, LARGEST, LARGEST)
PIXEL_NOISE = 1 / (255 * 12**0.5)  # standard deviation of the error of rounding to 8 bits
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
        which = (drawn.kernel * len(KERNEL_SIZES)).long().clamp(max=len(KERNEL_SIZES) - 1)
        result = random_convolution(images - center, random_kernels(drawn.normal), which, drawn.amount) + center
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


def choose_partners(u: Tensor, y: Tensor, d: Tensor, *, same_class: bool = False) -> Tensor:
    """For each sample the index of another, by a uniform number each: one of another domain.

    Where the batch has one domain (a single source, or pooled sampling), it is any other sample. With `same_class` it
    is one of the same class where there is one, else any.
    """
    other = d[:, None] != d[None, :]
    apart = ~torch.eye(len(d), dtype=torch.bool, device=d.device)
    allowed = torch.where(other.any(1, keepdim=True), other, apart)
    if same_class:
        alike = allowed & (y[:, None] == y[None, :])
        allowed = torch.where(alike.any(1, keepdim=True), alike, allowed)
    counted = allowed.cumsum(1)
    total = counted[:, -1]
    # A number just below 1 may have been rounded to 1.
    place = torch.minimum((u * total).long(), total - 1)
    return (counted <= place[:, None]).sum(1)


def mix_amplitude(images: Tensor, partners: Tensor, amount: Tensor) -> Tensor:
    """Images whose Fourier amplitude is (1 - amount) their own + amount that of images[partners]; the phase is kept.

    Args:
        images: (B, 3, H, W), real.
        partners: (B,) int64, which image of the batch gives the amplitude.
        amount: (B,) in [0, 1].

    Returns:
        (B, 3, H, W). Values may leave the range of the images: clipping them would change the phase.

    Example:
        >>> images = torch.rand(4, 3, 8, 8)
        >>> mix_amplitude(images, torch.tensor([2, 3, 0, 1]), torch.full((4,), 0.5)).shape
        torch.Size([4, 3, 8, 8])
    """
    transform = torch.view_as_real(torch.fft.rfft2(images.contiguous()))
    amplitude = torch.linalg.vector_norm(transform, dim=-1)
    share = amount[:, None, None, None]
    # Below what rounding pixels to 8 bits leaves, a phase is noise: such a frequency is not raised to the partner's.
    floor = PIXEL_NOISE * (images.shape[-2] * images.shape[-1]) ** 0.5
    factor = (1 - share) + share * amplitude[partners] / amplitude.clamp(min=floor)
    result: Tensor = torch.fft.irfft2(torch.view_as_complex(transform * factor[..., None]), s=images.shape[-2:])
    return result


def random_kernels(normal: Tensor) -> Tensor:
    """Kernels of `KERNEL_SIZES` from standard normal numbers (K, 3, 3, 5, 5): zero outside of their size.

    The variance of an entry is 1 / (3 size^2), so that a kernel keeps the scale of its input on average.
    """
    middle = LARGEST // 2
    kept = [
        functional.pad(normal[i, :, :, middle - s // 2 : middle + s // 2 + 1, middle - s // 2 : middle + s // 2 + 1]
                       / (3 * s * s) ** 0.5, [middle - s // 2] * 4)
        for i, s in enumerate(KERNEL_SIZES)
    ]  # fmt: skip
    return torch.stack(kept)


def random_convolution(images: Tensor, kernels: Tensor, which: Tensor, amount: Tensor) -> Tensor:
    """(1 - amount) of the image + amount of the image under its kernel, with zeros around the image.

    Args:
        images: (B, 3, H, W), centered: 0 is the mean color.
        kernels: (K, 3, 3, S, S), output channels first, S odd.
        which: (B,) int64, the kernel of each image.
        amount: (B,) in [0, 1].

    Returns:
        (B, 3, H, W).
    """
    count, size = kernels.shape[0], kernels.shape[-1]
    # One convolution with the kernels of all images, of which each image keeps its own: few kernels, no groups.
    every = functional.conv2d(images, kernels.flatten(0, 1), padding=size // 2)
    own = every.unflatten(1, (count, 3))[torch.arange(len(images), device=images.device), which]
    return torch.lerp(images, own, amount[:, None, None, None])


def mix_statistics(images: Tensor, partners: Tensor, amount: Tensor) -> Tensor:
    """Images whose channels' mean and standard deviation are (1 - amount) their own + amount those of `partners`."""
    share = amount[:, None, None, None]
    deviation, mean = torch.std_mean(images, (2, 3), correction=0, keepdim=True)
    other_deviation, other_mean = torch.std_mean(partners, (2, 3), correction=0, keepdim=True)
    factor = (1 - share) + share * other_deviation / deviation.clamp(min=PIXEL_NOISE)
    return (images - mean) * factor + torch.lerp(mean, other_mean, share)


def two_views(plain: Tensor, styled: Tensor, domains: int) -> Tensor:
    """Per-sample values of both views, domain-major: each domain's plain samples, then its styled ones."""
    parts = (values.unflatten(0, (domains, -1)) for values in (plain, styled))
    return torch.cat(list(parts), 1).flatten(0, 1)

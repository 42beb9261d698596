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
UNIFORMS = 5  # numbers per image that `Style` takes: partner, mixing coefficient, whether, which, kernel


@dataclass(frozen=True)
class Style:
    """What is done to the style of the training images; see `MethodConfig` for the meaning of each field."""

    kind: str  # amplitude, convolution, both, statistics
    amount: float = 1.0
    share: float = 1.0
    same_class: bool = False
    views: int = 1

    @classmethod
    def of(cls, config: MethodConfig) -> Style | None:
        """The style stage of a method's config; None where it is off."""
        if config.style == "none":
            return None
        return cls(
            config.style, config.style_amount, config.style_share, config.style_partner == "class", config.style_views
        )


class Styled(NamedTuple):
    """Images (B, 3, H, W), and the domain (B,) whose style each image is mixed with: its own where it is not."""

    images: Tensor
    d: Tensor


def draw_styled(images: Tensor, y: Tensor, d: Tensor, center: Tensor, style: Style, draws: Draws) -> Styled:
    """Style a batch: images (B, 3, H, W) in [0, 1], classes and domains (B,), `center` (1, 3, 1, 1) the mean color."""
    u = draws.uniform(len(y), UNIFORMS)
    chosen = choose_partners(u[:, 0], y, d, same_class=style.same_class)
    amount = style.amount * u[:, 1]
    styled = u[:, 2] < style.share
    mixed = torch.ones_like(styled)
    if style.kind == "statistics":
        result = mix_statistics(images, images[chosen], amount)
    elif style.kind == "amplitude":
        result = mix_amplitude(images, chosen, amount)
    else:
        kernels = random_kernels(draws.normal(*KERNELS_SHAPE))
        which = (u[:, 4] * len(KERNEL_SIZES)).long().clamp(max=len(KERNEL_SIZES) - 1)
        result = random_convolution(images - center, kernels, which, amount) + center
        mixed = torch.zeros_like(styled)
        if style.kind == "both":
            mixed = u[:, 3] < 0.5
            result = torch.where(mixed[:, None, None, None], mix_amplitude(images, chosen, amount), result)
    return Styled(torch.where(styled[:, None, None, None], result, images), torch.where(styled & mixed, d[chosen], d))


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

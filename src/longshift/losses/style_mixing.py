"""Style mixing: give an image the style of another source domain, or a random one, and keep what it shows.

*Amplitude mixing* moves the amplitude of an image's Fourier transform toward that of a partner from another source
domain and keeps the phase, which carries the shapes (Yang & Soatto 2020, arXiv:2004.05498; Xu et al. 2021,
arXiv:2105.11120). *Random convolution* blends the image with itself under a random small kernel (Xu et al. 2021,
arXiv:2007.13003). *Statistics* moves the mean and standard deviation of each color channel toward the partner's: what
MixStyle (Zhou et al. 2021, arXiv:2104.02008) does to feature maps, on the pixels.

Every function is pure and has static shapes: random numbers come in as tensors.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from longshift.losses.common import full_precision, upcast
from longshift.rng import Draws, HostDraws

STYLE_KINDS = ("amplitude", "convolution", "both", "statistics")  # both: amplitude or convolution, drawn per image
KERNEL_SIZES = (1, 1, 3, 3, 5, 5)  # of the random kernels of a step; each image gets one of them
LARGEST = max(KERNEL_SIZES)
KERNELS_SHAPE = (len(KERNEL_SIZES), 3, 3, LARGEST, LARGEST)
PIXEL_NOISE = 1 / (255 * 12**0.5)  # standard deviation of the error of rounding to 8 bits


def check_images(images: Tensor, **per_image: Tensor | None) -> None:
    """Refuse images that are not (B, 3, H, W) floats, and values by name that are not one per image."""
    if images.dim() != 4 or images.shape[1] != 3:
        raise ValueError(f"Expected images of shape (B, 3, H, W), got {tuple(images.shape)}.")
    if not images.is_floating_point():
        kind = str(images.dtype).removeprefix("torch.")
        text = f"Expected float images with values in [0, 1], got {kind}."
        raise ValueError(f"{text} Divide them first: images.float() / 255." if images.dtype == torch.uint8 else text)
    for name, values in per_image.items():
        if values is not None and values.shape != (len(images),):
            shape = tuple(values.shape)
            raise ValueError(f"Expected `{name}` of shape ({len(images)},), one value per image, got {shape}.")


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


def mix_amplitude(images: Tensor, partners: Tensor, amount: Tensor, styles: Tensor | None = None) -> Tensor:
    """Images whose Fourier amplitude is (1 - amount) their own + amount that of their partner; the phase is kept.

    Args:
        images: (B, 3, H, W), floats in [0, 1].
        partners: (B,) int64, which image of `styles` gives the amplitude.
        amount: (B,) in [0, 1].
        styles: (S, 3, H, W), images of which `partners` are indices; by default, the batch itself.

    Returns:
        (B, 3, H, W), of the dtype of the images. Values may leave their range: clipping them would change the phase.

    Raises:
        ValueError: If a shape is invalid, or the images are integers.

    Example:
        >>> images = torch.rand(4, 3, 8, 8)
        >>> mix_amplitude(images, torch.tensor([2, 3, 0, 1]), torch.full((4,), 0.5)).shape
        torch.Size([4, 3, 8, 8])
    """
    check_images(images, partners=partners, amount=amount)
    if styles is not None:
        check_images(styles)
        if styles.shape[2:] != images.shape[2:]:
            sides = " x ".join(map(str, images.shape[2:]))
            raise ValueError(f"Expected `styles` of {sides} pixels as the images, got {tuple(styles.shape)}.")
    if not len(images):  # PyTorch 2.11 with MKL rejects the Fourier transform of an empty batch
        return images
    return _mix_amplitude(images, partners, amount, styles).to(images.dtype)


@full_precision
def _mix_amplitude(images: Tensor, partners: Tensor, amount: Tensor, styles: Tensor | None) -> Tensor:
    transform, amplitude = _spectrum(images)
    others = amplitude if styles is None else _spectrum(styles)[1]
    share = amount[:, None, None, None]
    # Below what rounding pixels to 8 bits leaves, a phase is noise: such a frequency is not raised to the partner's.
    floor = PIXEL_NOISE * (images.shape[-2] * images.shape[-1]) ** 0.5
    factor = (1 - share) + share * others[partners] / amplitude.clamp(min=floor)
    result: Tensor = torch.fft.irfft2(torch.view_as_complex(transform * factor[..., None]), s=images.shape[-2:])
    return result


def _spectrum(images: Tensor) -> tuple[Tensor, Tensor]:
    """The Fourier transform of images, its real and imaginary parts last, and its amplitude."""
    transform = torch.view_as_real(torch.fft.rfft2(images.contiguous()))
    return transform, torch.linalg.vector_norm(transform, dim=-1)


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
        (B, 3, H, W), of the dtype of the images.
    """
    return _random_convolution(images, kernels, which, amount).to(images.dtype)


@full_precision
def _random_convolution(images: Tensor, kernels: Tensor, which: Tensor, amount: Tensor) -> Tensor:
    count, size = kernels.shape[0], kernels.shape[-1]
    # One convolution with the kernels of all images, of which each image keeps its own: few kernels, no groups.
    every = functional.conv2d(images, kernels.flatten(0, 1), padding=size // 2)
    own = every.unflatten(1, (count, 3))[torch.arange(len(images), device=images.device), which]
    return torch.lerp(images, own, amount[:, None, None, None])


def choose_kernels(u: Tensor) -> Tensor:
    """Which of the kernels of `KERNEL_SIZES` each image gets, (B,) int64, by a uniform number each."""
    return (u * len(KERNEL_SIZES)).long().clamp(max=len(KERNEL_SIZES) - 1)


def mix_statistics(images: Tensor, partners: Tensor, amount: Tensor, styles: Tensor | None = None) -> Tensor:
    """Images whose channels' mean and standard deviation are (1 - amount) their own + amount those of their partner.

    The arguments are those of `mix_amplitude`.
    """
    return _mix_statistics(images, partners, amount, styles).to(images.dtype)


@full_precision
def _mix_statistics(images: Tensor, partners: Tensor, amount: Tensor, styles: Tensor | None) -> Tensor:
    share = amount[:, None, None, None]
    own = torch.std_mean(images, (2, 3), correction=0, keepdim=True)
    others = own if styles is None else torch.std_mean(styles, (2, 3), correction=0, keepdim=True)
    (deviation, mean), (other_deviation, other_mean) = own, (values[partners] for values in others)
    factor = (1 - share) + share * other_deviation / deviation.clamp(min=PIXEL_NOISE)
    return (images - mean) * factor + torch.lerp(mean, other_mean, share)


class StyleModule(nn.Module):
    """The base of style mixing as a module: random numbers, the largest amount and the share of the images."""

    stream: ClassVar[int]  # of the default random numbers, which two modules with one seed must not share

    def __init__(self, amount: float, share: float, draws: Draws | None, seed: int) -> None:
        super().__init__()
        if not (0 <= amount <= 1 and 0 <= share <= 1):
            raise ValueError(f"Expected `amount` and `share` from 0 to 1, got {amount} and {share}.")
        self.amount, self.share = amount, share
        self.draws: Draws = draws or HostDraws(seed, self.stream)

    def uniforms(self, images: Tensor) -> Tensor:
        """Draw three uniform numbers per image: the module's own choice, the amount, and whether it is styled."""
        return self.draws.uniform(len(images), 3).to(images)

    def keep_share(self, images: Tensor, styled: Tensor, u: Tensor) -> Tensor:
        """Return the styled images for a share of the batch, and the others unchanged, in the images' memory format."""
        # The result has the memory format of the first tensor, and Fourier transforms lose channels-last.
        return torch.where((u >= self.share)[:, None, None, None], images, styled)


class AmplitudeMix(StyleModule):
    """Mix the Fourier amplitude of each image with that of an image of another domain (arXiv:2105.11120).

    In evaluation mode images are returned unchanged, and so is an empty batch.

    Args:
        amount: Largest mixing coefficient; each image draws its own from U(0, amount).
        share: Share of the images that are mixed.
        same_class: Choose partners of the same class, where another domain has one in the batch.
        draws: Source of random numbers; NumPy with `seed` by default.
        seed: Seed of the default `draws`.

    Raises:
        ValueError: If an option or a shape is invalid, or the images are integers.

    Example:
        >>> mix = AmplitudeMix(amount=1.0)
        >>> mix(torch.rand(6, 3, 32, 32), torch.tensor([0, 0, 1, 1, 2, 2])).shape
        torch.Size([6, 3, 32, 32])
    """

    stream = 1

    def __init__(
        self,
        amount: float = 1.0,
        share: float = 1.0,
        *,
        same_class: bool = False,
        draws: Draws | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(amount, share, draws, seed)
        self.same_class = same_class

    def forward(self, images: Tensor, d: Tensor, y: Tensor | None = None) -> Tensor:
        """Mix images (B, 3, H, W) with values in [0, 1], of domains d (B,) and, for `same_class`, classes y (B,)."""
        check_images(images, d=d, y=y)
        if y is None and self.same_class:
            raise ValueError("Expected the classes `y` of the images with same_class=True, got none.")
        if not self.training or not len(images):
            return images
        full = upcast(images)
        u = self.uniforms(full)
        partners = choose_partners(u[:, 0], d if y is None else y, d, same_class=self.same_class)
        return self.keep_share(full, mix_amplitude(full, partners, self.amount * u[:, 1]), u[:, 2]).to(images.dtype)


class RandomConvolution(StyleModule):
    """Blend each image with itself under a random kernel of 1, 3 or 5 pixels (arXiv:2007.13003).

    In evaluation mode images are returned unchanged, and so is an empty batch.

    Args:
        amount: Largest mixing coefficient; each image draws its own from U(0, amount).
        share: Share of the images that are blended.
        center: The mean color, which kernels leave as it is: a number, or one per channel.
        draws: Source of random numbers; NumPy with `seed` by default.
        seed: Seed of the default `draws`.

    Raises:
        ValueError: If an option or a shape is invalid, or the images are integers.

    Example:
        >>> convolve = RandomConvolution(share=0.5)
        >>> convolve(torch.rand(6, 3, 32, 32)).shape
        torch.Size([6, 3, 32, 32])
    """

    stream = 2
    center: Tensor

    def __init__(
        self,
        amount: float = 1.0,
        share: float = 1.0,
        *,
        center: float | tuple[float, float, float] = 0.5,
        draws: Draws | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(amount, share, draws, seed)
        color = torch.as_tensor(center, dtype=torch.get_default_dtype())
        if color.numel() not in (1, 3):
            raise ValueError(f"Expected `center` as a number or one per channel, got {color.numel()} numbers.")
        color = color.reshape(1, -1, 1, 1).expand(1, 3, 1, 1)
        self.register_buffer("center", color.clone(), persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        """Blend images (B, 3, H, W) with values in [0, 1]."""
        check_images(images)
        if not self.training or not len(images):
            return images
        full = upcast(images)
        u, normal = self.uniforms(full), self.draws.normal(*KERNELS_SHAPE).to(full)
        center, kernels = self.center.to(full), random_kernels(normal)
        styled = random_convolution(full - center, kernels, choose_kernels(u[:, 0]), self.amount * u[:, 1]) + center
        return self.keep_share(full, styled, u[:, 2]).to(images.dtype)

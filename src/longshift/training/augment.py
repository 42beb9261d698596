"""Augmentation of a whole training batch at once, each image with its own random numbers.

The built-in recipe "domainbed" is DomainBed's (Gulrajani & Lopez-Paz 2021): random resized crop (area 0.7-1, aspect
3/4-4/3), horizontal flip, jitter of 0.3 in brightness, contrast, saturation and hue, gray with probability 0.1. Color
changes have this fixed order instead of a random one, so that the whole recipe is one static computation.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from longshift.errors import LongshiftError
from longshift.registry import Registry, plugin_version

Augment = Callable[[Tensor, Tensor], Tensor]  # (images (B, 3, H, W) in [0, 1], uniform numbers (B, n)) -> images

AREA, ASPECT = (0.7, 1.0), (3 / 4, 4 / 3)  # of a crop: its share of the image, width over height
JITTER, FLIPPED, GRAY = 0.3, 0.5, 0.1
UNIFORMS = 10  # numbers per image
LUMA = (0.2989, 0.587, 0.114)


@dataclass(frozen=True)
class BatchAugmentation:
    """An augmentation that a run can name: a function, and how many uniform numbers per image it takes."""

    apply: Augment
    uniforms: int
    version: str = ""  # of the code, where a plugin defines it


AUGMENTATIONS = Registry[BatchAugmentation]("augmentation")
RESERVED = ("auto", "on", "off")


def register_augmentation(name: str, *, uniforms: int) -> Callable[[Augment], Augment]:
    """Decorate a function that augments training batches: `--augment NAME` then uses it.

    Args:
        name: Name of the augmentation.
        uniforms: How many random numbers the function takes per image.

    Returns:
        The decorator. The function gets images (B, 3, H, W) in [0, 1] and numbers (B, uniforms), uniform in [0, 1), on
        the same device, and returns images of the same shape. It must draw no random numbers of its own and must not
        read tensors on the host (`.item()`, `if tensor:`): a step may be compiled or captured in a CUDA graph.

    Raises:
        LongshiftError: If another augmentation has this name.

    Example:
        >>> @register_augmentation("dim", uniforms=1)
        ... def dim(images, u):
        ...     return images * (0.5 + 0.5 * u[:, :, None, None])
    """
    if name in RESERVED or not name:
        raise LongshiftError(f"Expected a name other than {', '.join(RESERVED)}, got {name!r}.")

    def add(function: Augment) -> Augment:
        AUGMENTATIONS.add(name, BatchAugmentation(function, uniforms, plugin_version(function)))
        return function

    return add


@register_augmentation("domainbed", uniforms=UNIFORMS)
def augment_like_domainbed(images: Tensor, u: Tensor) -> Tensor:
    """The protocol's augmentation; row i of the uniform numbers `u` (B, 10) decides on image i."""
    images = crop_and_flip(images, *crop_box(*u[:, :4].unbind(1)), u[:, 4] < FLIPPED)
    strength = 1 + JITTER * (2 * u[:, 5:8] - 1)
    images = brightness(images, strength[:, 0])
    images = contrast(images, strength[:, 1])
    images = saturation(images, strength[:, 2])
    images = rotate_hue(images, JITTER * (2 * u[:, 8] - 1))
    return torch.where(_per_image(u[:, 9] < GRAY), luma(images).expand_as(images), images)


def find_augmentation(name: str, compiled: bool = False) -> BatchAugmentation:
    """The augmentation of that name; compiled, it runs in a handful of fused kernels instead of a hundred."""
    found = AUGMENTATIONS.find(name)
    return replace(found, apply=_compile(found.apply)) if compiled else found


@functools.cache
def _compile(function: Augment) -> Augment:
    return torch.compile(function, dynamic=False)


def crop_box(area: Tensor, aspect: Tensor, left: Tensor, top: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Crop (left, top, width, height) as fractions of the image, from four uniform numbers per image."""
    size = _interpolate(area, _AREA_QUANTILES)
    # Of the aspects, only those fit that keep both sides inside the image: |log aspect| <= -log area.
    fitting = -size.log()
    low = torch.maximum(-fitting, torch.full_like(size, math.log(ASPECT[0])))
    high = torch.minimum(fitting, torch.full_like(size, math.log(ASPECT[1])))
    ratio = torch.exp(low + (high - low) * aspect)
    width = (size * ratio).sqrt().clamp(max=1.0)
    height = (size / ratio).sqrt().clamp(max=1.0)
    return left * (1 - width), top * (1 - height), width, height


def area_quantiles() -> tuple[float, ...]:
    """Quantiles of the area of a crop, at equal steps of probability.

    The usual random resized crop draws area and aspect until the box fits. What it accepts has the density of the
    share of aspects that fit an area; large areas are rarer than small ones. Inverting its distribution once needs no
    retries.
    """
    areas = np.linspace(*AREA, 20_001)
    low, high = (math.log(a) for a in ASPECT)
    fitting = -np.log(areas)
    share = np.clip(np.minimum(high, fitting) - np.maximum(low, -fitting), 0, None) + 1e-9
    steps = np.concatenate([[0.0], np.cumsum((share[1:] + share[:-1]) / 2)])
    return tuple(np.interp(np.linspace(0, 1, 33), steps / steps[-1], areas).tolist())


def _interpolate(u: Tensor, table: tuple[float, ...]) -> Tensor:
    """Piecewise linear function on [0, 1] from its values at equal steps.

    A sum of clamped ramps: no table has to be copied to the device, which a captured step could not do.
    """
    position = u * (len(table) - 1)
    result = torch.full_like(u, table[0])
    for index in range(len(table) - 1):
        result = result + (position - index).clamp(0, 1) * (table[index + 1] - table[index])
    return result


def crop_and_flip(images: Tensor, left: Tensor, top: Tensor, width: Tensor, height: Tensor, flipped: Tensor) -> Tensor:
    """Cut each image's box, stretch it to the full size (bilinear), mirror where `flipped`."""
    sign = 1 - 2 * flipped.to(images.dtype)
    zero = torch.zeros_like(width)
    # affine_grid works on [-1, 1]: scale by the box's size, shift to its center.
    theta = torch.stack(
        [
            torch.stack([width * sign, zero, 2 * left + width - 1], 1),
            torch.stack([zero, height, 2 * top + height - 1], 1),
        ],
        1,
    )
    grid = functional.affine_grid(theta.to(images.dtype), list(images.shape), align_corners=False)
    return functional.grid_sample(images, grid, mode="bilinear", padding_mode="border", align_corners=False)


def luma(images: Tensor) -> Tensor:
    """Gray value (B, 1, H, W)."""
    return LUMA[0] * images[:, 0:1] + LUMA[1] * images[:, 1:2] + LUMA[2] * images[:, 2:3]


def brightness(images: Tensor, factor: Tensor) -> Tensor:
    """Multiply."""
    return (images * _per_image(factor)).clamp(0, 1)


def contrast(images: Tensor, factor: Tensor) -> Tensor:
    """Move away from, or toward, the mean gray value of the image."""
    center = luma(images).mean((1, 2, 3), keepdim=True)
    return _blend(images, center, factor)


def saturation(images: Tensor, factor: Tensor) -> Tensor:
    """Move away from, or toward, the gray image."""
    return _blend(images, luma(images), factor)


def rotate_hue(images: Tensor, turn: Tensor) -> Tensor:
    """Turn the hue by a fraction of the color circle, through HSV."""
    red, green, blue = images.unbind(1)
    value = torch.maximum(torch.maximum(red, green), blue)
    chroma = value - torch.minimum(torch.minimum(red, green), blue)
    safe = torch.where(chroma > 0, chroma, torch.ones_like(chroma))
    sextant = torch.where(
        value == red,
        (green - blue) / safe,
        torch.where(value == green, 2 + (blue - red) / safe, 4 + (red - green) / safe),
    )
    turned = sextant + 6 * turn[:, None, None]
    channels = []
    for offset in (5, 3, 1):  # red, green, blue: where on the circle each channel is at its lowest
        k = torch.remainder(turned + offset, 6)
        channels.append(value - chroma * torch.minimum(k, 4 - k).clamp(0, 1))
    return torch.stack(channels, 1)


def _blend(images: Tensor, other: Tensor, factor: Tensor) -> Tensor:
    weight = _per_image(factor)
    return (weight * images + (1 - weight) * other).clamp(0, 1)


def _per_image(values: Tensor) -> Tensor:
    return values[:, None, None, None]


# Computed once, so that compiled code finds plain numbers and does not trace their computation.
_AREA_QUANTILES = area_quantiles()

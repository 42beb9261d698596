"""A small convolutional network for images of 64 pixels or less (the embedded data)."""

from __future__ import annotations

import itertools

from torch import nn

SIZES = (3, 16, 32, 64, 64)  # channels


def small_conv() -> tuple[nn.Module, int]:
    """Build four 3x3 convolutions with group norm; return the module and its feature length.

    Group norm has no running statistics, so the result does not depend on how batches mix the domains.
    """
    layers: list[nn.Module] = []
    for index, (before, after) in enumerate(itertools.pairwise(SIZES)):
        stride = 2 if index in (0, 1, 2) else 1
        layers += [
            nn.Conv2d(before, after, 3, stride=stride, padding=1),
            nn.GroupNorm(8, after),
            nn.ReLU(),
        ]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten()), SIZES[-1]

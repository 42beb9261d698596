"""From a split to batches: which samples a step sees, and how pixels become network input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from longshift.array_types import IntArray
from longshift.methods import Batch, StyleConfig
from longshift.rng import Draws
from longshift.training.augment import BatchAugmentation
from longshift.training.style import draw_styled, two_views


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """The training samples, domain-major: positions `starts[d] ... starts[d] + sizes[d] - 1` are domain d's."""

    indices: IntArray  # (N,) rows of the store
    y: IntArray  # (N,)
    starts: IntArray  # (D,)
    sizes: IntArray  # (D,)

    @property
    def domains(self) -> int:
        """Number of source domains."""
        return len(self.sizes)


def training_set(indices: IntArray, y: IntArray, d: IntArray, domains: int) -> TrainingSet:
    """Sort samples by domain and remember where each domain starts."""
    order = np.argsort(d, kind="stable")
    sizes = np.bincount(d, minlength=domains).astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    return TrainingSet(indices[order], y[order], starts, sizes)


def draw_positions(train: TrainingSet, per_domain: int, draws: Draws) -> Tensor:
    """Positions (D * per_domain,) in the training set, with replacement: a domain of 3 samples fills a batch of 32."""
    low = train.starts[:, None]
    return draws.integers(low, low + train.sizes[:, None], train.domains, per_domain).reshape(-1)


@dataclass(frozen=True, eq=False)
class Inputs:
    """Turns stored samples into network inputs: pixels to [0, 1], augmentation, style, then (x - mean) / std."""

    mean: Tensor  # (1, 3, 1, 1), on the device; unused for vectors
    std: Tensor
    augmentation: BatchAugmentation | None
    style: StyleConfig | None = None
    compiled: bool = False

    def evaluation(self, stored: Tensor) -> Tensor:
        """Network inputs without augmentation and style."""
        if stored.dtype != torch.uint8:
            return stored
        return normalize_pixels(stored, self.mean, self.std).contiguous(memory_format=torch.channels_last)

    def batch(self, stored: Tensor, y: Tensor, domains: int, draws: Draws) -> Batch:
        """A training batch from stored samples and labels in domain-major order."""
        d = torch.arange(domains, device=y.device).repeat_interleave(y.shape[0] // domains)
        if stored.dtype != torch.uint8:
            return Batch(stored, y, d, domains)
        images = scale_pixels(stored, self.mean.dtype)
        if self.augmentation is not None:
            images = self.augmentation.apply(images, draws.uniform(images.shape[0], self.augmentation.uniforms))
        if self.style is None:
            return Batch(self._normalize(images), y, d, domains)
        styled, style_d = draw_styled(images, y, d, self.mean, self.style, draws, self.compiled)
        if self.style.views == 1:
            return Batch(self._normalize(styled), y, d, domains, style_d)
        x, y, style_d, d = (
            two_views(plain, other, domains) for plain, other in ((images, styled), (y, y), (d, style_d), (d, d))
        )
        return Batch(self._normalize(x), y, d, domains, style_d)

    def _normalize(self, images: Tensor) -> Tensor:
        return ((images - self.mean) / self.std).contiguous(memory_format=torch.channels_last)


def channel_tensor(values: Sequence[float], device: torch.device) -> Tensor:
    """One value per channel as (1, 3, 1, 1): a mean or standard deviation of pixels."""
    return torch.tensor(values, device=device).reshape(1, 3, 1, 1)


def normalize_pixels(stored: Tensor, mean: Tensor, std: Tensor) -> Tensor:
    """Network inputs (B, 3, H, W) from pixels (B, H, W, 3) uint8: scaled to [0, 1], then (x - mean) / std."""
    return (scale_pixels(stored, mean.dtype) - mean) / std


def scale_pixels(stored: Tensor, dtype: torch.dtype) -> Tensor:
    """(B, H, W, 3) uint8 to (B, 3, H, W) float in [0, 1]; a view in channels-last order."""
    return stored.permute(0, 3, 1, 2).to(dtype) / 255

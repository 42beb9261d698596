"""Copies of images for a frozen network: augmented, and styled after an image of another domain.

Copy v of image i depends on v, i and the recipe alone, so that it can be computed at any time and in any batch, and
runs with other targets, settings and seeds share it. The partner of a styled copy may therefore be any image of
another domain; a run leaves out the copies whose partner is not one of its training images.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from longshift.array_types import FloatArray, IntArray
from longshift.data import Manifest
from longshift.losses import KERNELS_SHAPE, random_kernels
from longshift.methods import StyleConfig
from longshift.rng import generator
from longshift.training.augmentation import find_augmentation
from longshift.training.run_config import RunConfig
from longshift.training.style_stage import UNIFORMS, Drawn, mix_styles

SEED = 20190  # of all copies: a cache of features serves every train seed
# Version of how partners are chosen. A cache keeps the features of copies, but their partners are chosen anew by each
# run, which leaves out the copies with the style of other images than its own: both must be by one rule.
PARTNER_RULE = 2


@dataclass(frozen=True)
class CopyRecipe:
    """How copies differ from their image."""

    augmentation: str = ""  # "" for none
    style: StyleConfig | None = None

    @classmethod
    def of(cls, config: RunConfig) -> CopyRecipe:
        """The recipe of a run."""
        return cls(config.augmentation, config.style_config())

    def key(self) -> dict[str, Any]:
        """Everything that tells recipes apart, as plain values."""
        style = self.style
        mixed = [style.mix, style.amount, style.share, style.partner == "class"] if style else None
        version = find_augmentation(self.augmentation).version if self.augmentation else ""
        code = {"code": version} if version else {}  # of a plugin: its name does not tell what it does
        rule = {"partners": PARTNER_RULE} if style and style.has_partners else {}
        return {"augmentation": self.augmentation, "style": mixed, **code, **rule}


class ViewPlan:
    """The random choices of one view of all images of a dataset."""

    def __init__(self, manifest: Manifest, recipe: CopyRecipe, view: int) -> None:
        self.recipe, self.view = recipe, view
        self._augment = find_augmentation(recipe.augmentation) if recipe.augmentation else None
        rng, n = generator(SEED, view, 0), len(manifest)
        self._augment_u = torch.from_numpy(rng.random((n, self._augment.uniforms if self._augment else 0)))
        self._style_u = torch.from_numpy(rng.random((n, UNIFORMS)))
        self.partners: IntArray | None = None
        self.style_samples = np.arange(n)
        style = recipe.style
        if style is not None and style.has_partners:
            self.partners = choose_partners_in_dataset(manifest, rng.random((n, 2)), style.partner == "class")
            drawn = Drawn.of(self._style_u, style)
            self.style_samples = np.where((drawn.styled & drawn.mixed).numpy(), self.partners, self.style_samples)

    def apply(self, images: Tensor, styles: Tensor, indices: IntArray, center: Tensor) -> Tensor:
        """Copies of images (B, 3, H, W) in [0, 1].

        `styles` (B, 3, H, W) are the partners of the images, `indices` their places in the dataset, and `center`
        (1, 3, 1, 1) is the mean color.
        """
        places, style = torch.from_numpy(indices), self.recipe.style
        if self._augment is not None:
            images = self._augment.apply(images, self._augment_u[places].to(images))
        if style is None:
            return images
        # Compared in double precision, as for `style_samples`; the amounts have the precision of the images.
        drawn, kernels = Drawn.of(self._style_u[places], style, images.dtype), None
        every = torch.arange(len(images))
        if style.has_kernels:
            kernels = self._kernels(indices, drawn.kernel).to(images)
            drawn = drawn._replace(kernel=every)
        drawn = Drawn(*(values.to(images.device) for values in drawn))
        return mix_styles(images, center, drawn, every.to(images.device), kernels, style.mix, styles)

    def _kernels(self, indices: IntArray, chosen: Tensor) -> Tensor:
        """A random kernel for each image: that of the chosen size from the image's own set."""
        kernels = [
            random_kernels(torch.from_numpy(generator(SEED, self.view, 1 + int(i)).standard_normal(KERNELS_SHAPE)))[k]
            for i, k in zip(indices, chosen.tolist(), strict=True)
        ]
        return torch.stack(kernels)


def choose_partners_in_dataset(manifest: Manifest, u: FloatArray, same_class: bool = False) -> IntArray:
    """For each image the index of another, by two uniform numbers: any other domain, then any of its images.

    An image has the same possible partners as by `longshift.losses.choose_partners`, which training uses on a batch:
    images of other domains, or with a single domain any other image; with `same_class` those of the same class where
    there are any. Training draws uniformly over these images. Here each of their domains is equally likely, and each
    image within it: large domains do not give most styles. An image that is alone in the dataset is its own partner.

    Whoever changes the choice raises `PARTNER_RULE`.
    """
    domains = len(manifest.domain_names)
    members = [np.flatnonzero(manifest.domains == d) for d in range(domains)]
    alike = {
        (d, k): rows[manifest.labels[rows] == k] for d, rows in enumerate(members) for k in range(len(manifest.classes))
    }

    @functools.cache
    def pools(d: int, k: int) -> list[IntArray]:
        """Images that may be the partner of one of domain d and class k, by domain."""
        others = [other for step in range(1, domains) if len(members[other := (d + step) % domains])] or [d]
        of_class = [alike[other, k] for other in others if len(alike[other, k]) > (other == d)]
        return of_class if same_class and of_class else [members[other] for other in others]

    partners = np.arange(len(manifest))
    for i, (d, k) in enumerate(zip(manifest.domains.tolist(), manifest.labels.tolist(), strict=True)):
        found = pools(d, k)
        partners[i] = _other_than(i, found[int(u[i, 0] * len(found))], u[i, 1])
    return partners


def _other_than(index: int, rows: IntArray, u: float) -> int:
    """One of the sorted rows by a uniform number, but not `index` unless it is the only one."""
    place = int(np.searchsorted(rows, index))
    inside = place < len(rows) and rows[place] == index and len(rows) > 1
    chosen = int(u * (len(rows) - inside))
    return int(rows[chosen + (inside and chosen >= place)])

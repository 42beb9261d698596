"""Datasets with many sites for measurements on new sites: PACS features, digits in random styles, made-up vectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from longshift.array_types import FloatArray
from longshift.data import digits as draw
from longshift.data.digits import _originals
from longshift.data.vectors import read_vectors
from longshift.nn import make_backbone
from longshift.training import channel_tensor, normalize_pixels

Floats = npt.NDArray[np.float32]
STYLES, MADE_UP = 6, 6  # sites of the generated datasets
FAR = 6  # more sites that no model is trained on, beyond the reach of the others
ENLARGED = 4  # times 32 pixels
CLASSES, LENGTH, SAMPLES = 6, 24, 240  # of the made-up vectors


@dataclass(frozen=True, eq=False)
class Sites:
    """Vectors and labels per site, and the sites that no model is trained on."""

    name: str
    x: Mapping[str, Floats]
    y: Mapping[str, npt.NDArray[np.str_]]
    far: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The sites that models are trained on."""
        return tuple(name for name in self.x if name not in self.far)

    def write(self, path: Path, sites: tuple[str, ...]) -> Path:
        """Some of the sites as a file that `longshift fit` reads."""
        path.parent.mkdir(parents=True, exist_ok=True)
        domain = np.concatenate([np.full(len(self.x[site]), site) for site in sites])
        x, label = (np.concatenate([part[site] for site in sites]) for part in (self.x, self.y))
        np.savez(path, x=x, label=label, domain=domain)
        return path


def pacs(file: Path, seed: int, most: int = 500) -> Sites:
    """At most `most` random samples of each domain."""
    found = read_vectors(file)
    rng = np.random.default_rng(seed)
    label, domain = np.array(found.labels), np.array(found.domains)
    x, y = {}, {}
    for site in np.unique(domain).tolist():
        chosen = rng.permutation(np.flatnonzero(domain == site))[:most]
        x[site], y[site] = found.x[chosen], label[chosen]
    return Sites("pacs", x, y)


def random_style(rng: np.random.Generator, strokes: FloatArray, numbers: npt.NDArray[np.int64]) -> draw.Pixels:
    """Digits in a look that the generator decides: stroke, slant, blur, colors, paper, hatching, grain."""
    low = rng.uniform(0.1, 0.4)
    mask = draw.sharpen(draw.enlarge(strokes), low, low + rng.uniform(0.2, 0.5))
    mask = draw.slant(mask, int(rng.integers(-6, 7)))
    for _ in range(int(rng.integers(0, 3))):
        mask = draw.soften(mask)
    rows, columns = np.mgrid[0 : draw.SIZE, 0 : draw.SIZE]
    if rng.random() < 0.3:
        mask = mask * np.where((rows + columns) % 4 < 2, 1.0, rng.uniform(0.3, 0.8))
    if rng.random() < 0.3:
        mask = mask * np.where(draw.noise(numbers, 4, draw.SIZE) < 0.2, rng.uniform(0.0, 0.6), 1.0)
    dark, light = rng.uniform(0, 110, 3), rng.uniform(145, 255, 3)
    ink, paper = (dark, light) if rng.random() < 0.5 else (light, dark)
    reach = rng.uniform(0, 60)
    stream = int(rng.integers(100, 10**6))
    ground = draw.vary(paper, numbers, stream, reach)
    grain = (draw.noise(numbers, stream + 1, draw.SIZE) - 0.5) * rng.uniform(0, 80)
    stains = draw.soften(draw.spread(draw.noise(numbers, stream + 2, 8), 4)) * rng.uniform(0, 60)
    return draw.blend(mask, draw.vary(ink, numbers, stream + 3, reach), ground + (grain + stains)[..., None])


def degrade(rng: np.random.Generator, images: draw.Pixels) -> draw.Pixels:
    """The same images with less contrast and more grain: a little, or until hardly a digit can be seen."""
    amount = rng.uniform()
    made = 128 + (1 - 0.8 * amount) * (images - 128.0) + rng.normal(0, 60 * amount, images.shape)
    return np.clip(made, 0, 255).astype(np.uint8)


def digits(weights: Path, seed: int, far: bool = False) -> Sites:
    """The handwritten digits in six random styles, each digit at one site, as features of a frozen MobileNetV2.

    Far sites have styles of their own, less contrast and more grain.
    """
    strokes, labels = _originals()
    rng = np.random.default_rng(1000 + seed)
    home = rng.integers(0, STYLES, len(labels))
    network = make_backbone("mobilenetv2_100", weights=weights)
    mean, std = (channel_tensor(values, torch.device("cpu")) for values in (network.mean, network.std))
    x, y = {}, {}
    names = [f"style {number}" for number in range(STYLES)]
    beyond = tuple(f"far {number}" for number in range(FAR if far else 0))
    for number, name in enumerate((*names, *beyond)):
        favored = rng.dirichlet(np.full(10, 3.0))  # sites differ in their class frequencies
        own = np.flatnonzero(home == number % STYLES)
        own = own[rng.random(len(own)) < np.minimum(1.0, favored[labels[own]] * 10)]
        images = random_style(rng, strokes[own], own)
        if name in beyond:
            images = degrade(rng, images)
        parts = []
        with torch.inference_mode():
            for start in range(0, len(own), 64):
                pixels = torch.from_numpy(images[start : start + 64])
                pixels = pixels.repeat_interleave(ENLARGED, 1).repeat_interleave(ENLARGED, 2)
                parts.append(network.module.eval()(normalize_pixels(pixels, mean, std)).float().numpy())
        x[name] = np.concatenate(parts)
        y[name] = labels[own].astype(str)
    return Sites(f"digits-{seed}", x, y, beyond)


def vectors(seed: int, far: bool = False) -> Sites:
    """Gaussian classes; each site moves, scales and turns them and has class frequencies of its own.

    How much sites differ is drawn per dataset, and sites come in groups that look alike, as hospitals with the same
    device do. Far sites belong to no group and differ up to three times as much.
    """
    rng = np.random.default_rng(2000 + seed)
    centers = rng.normal(0, rng.uniform(0.7, 1.3), (CLASSES, LENGTH))
    reach, turn = rng.uniform(0.1, 1.2), rng.uniform(0.0, 0.35)
    groups = [_look(rng, reach, turn) for _ in range(int(rng.integers(2, MADE_UP + 1)))]
    x, y = {}, {}
    names = [f"site {number}" for number in range(MADE_UP)]
    beyond = tuple(f"far {number}" for number in range(FAR if far else 0))
    for name in (*names, *beyond):
        if name in beyond:
            more = rng.uniform(1, 3)
            shift, scale, mix = _look(rng, more * reach, more * turn)
        else:
            shift, scale, mix = groups[int(rng.integers(len(groups)))]
        own_shift, own_scale, own_mix = _look(rng, reach / 3, turn / 3)
        label = rng.choice(CLASSES, SAMPLES, p=rng.dirichlet(np.full(CLASSES, 2.0)))
        label[:CLASSES] = np.arange(CLASSES)
        clean = centers[label] + rng.normal(0, 1, (SAMPLES, LENGTH))
        made = (clean @ mix @ own_mix) * scale * own_scale + shift + own_shift
        x[name] = made.astype(np.float32)
        y[name] = np.array([f"class {k}" for k in label])
    return Sites(f"vectors-{seed}", x, y, beyond)


def _look(rng: np.random.Generator, reach: float, turn: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """A shift, a scale per column and a mixing of columns."""
    skew = rng.normal(0, turn, (LENGTH, LENGTH))
    mix = np.linalg.qr(np.eye(LENGTH) + (skew - skew.T) / 2)[0]
    return rng.normal(0, reach, LENGTH), np.exp(rng.normal(0, reach / 3, LENGTH)), mix

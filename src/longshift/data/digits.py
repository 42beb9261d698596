"""The datasets that are part of the package: handwritten digits in four styles, and features of PACS.

The digits are scikit-learn's 1,797 handwritten digits in four visual styles, one style per domain. Each appears in one
domain only, so nothing leaks from one domain to another. A style turns (n, 8, 8) strokes on [0, 1] into (n, 32, 32, 3)
uint8. Weights are dyadic fractions, so that the arithmetic is exact and every machine draws the same pixels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from longshift.array_types import FloatArray, IntArray
from longshift.data.manifest import Manifest, Row

DIGITS = "digits"
PACS_FEATURES = "pacs-features"
EMBEDDED = (DIGITS, PACS_FEATURES)

PACS_FEATURES_FILE = Path(__file__).with_name("pacs_features.npz")  # pacs_features.md tells where it comes from
SIZE = 32
MARGIN = 4
Pixels = npt.NDArray[np.uint8]
Style = Callable[[FloatArray, IntArray], Pixels]


def enlarge(strokes: FloatArray) -> FloatArray:
    """Bilinear from 8x8 to 24x24 (weights rounded to 64ths), in the middle of an empty 32x32."""
    grid = (np.arange(24) + 0.5) / 3 - 0.5
    low = np.floor(grid).astype(np.int64)
    weight = np.round((grid - low) * 64) / 64
    first, second = np.clip(low, 0, 7), np.clip(low + 1, 0, 7)
    rows = strokes[:, first] * (1 - weight)[:, None] + strokes[:, second] * weight[:, None]
    both = rows[:, :, first] * (1 - weight) + rows[:, :, second] * weight
    return np.pad(both, ((0, 0), (MARGIN, MARGIN), (MARGIN, MARGIN)))


def noise(numbers: IntArray, stream: int, cells: int) -> FloatArray:
    """(n, cells, cells) uniform numbers on [0, 1), fixed for each digit and stream."""
    out = np.empty((len(numbers), cells, cells))
    for i, number in enumerate(numbers.tolist()):
        # The raw bits of the generator are the same in all versions of NumPy; its distributions need not be.
        raw = np.random.Philox(key=[number, stream]).random_raw(cells * cells)
        out[i] = (raw >> np.uint64(48)).reshape(cells, cells) / 65536
    return out


def sharpen(mask: FloatArray, low: float, high: float) -> FloatArray:
    """Stretch [low, high] to [0, 1]."""
    return np.clip((mask - low) / (high - low), 0, 1)


def spread(values: FloatArray, cell: int) -> FloatArray:
    """Repeat each value as a square of `cell` pixels."""
    return values.repeat(cell, axis=1).repeat(cell, axis=2)


def soften(mask: FloatArray) -> FloatArray:
    """Blur with weights 1 2 1 in both directions."""
    padded = np.pad(mask, ((0, 0), (1, 1), (1, 1)), mode="edge")
    rows = (padded[:, :-2] + 2 * padded[:, 1:-1] + padded[:, 2:]) / 4
    return np.asarray((rows[:, :, :-2] + 2 * rows[:, :, 1:-1] + rows[:, :, 2:]) / 4)


def slant(mask: FloatArray, pixels: int) -> FloatArray:
    """Shear to the right: the top row moves by `pixels`, the bottom row by as much to the left."""
    out = np.zeros_like(mask)
    for row in range(SIZE):
        shift = round(pixels * (SIZE / 2 - 0.5 - row) / (SIZE / 2))
        source = mask[:, row]
        if shift >= 0:
            out[:, row, shift:] = source[:, : SIZE - shift]
        else:
            out[:, row, :shift] = source[:, -shift:]
    return out


def blend(mask: FloatArray, ink: FloatArray, paper: FloatArray) -> Pixels:
    """`ink` where the mask is 1, `paper` where it is 0; colors on [0, 255], broadcast to (n, 32, 32, 3)."""
    mixed = paper + mask[..., None] * (ink - paper)
    return np.clip(np.floor(mixed + 0.5), 0, 255).astype(np.uint8)


def color(*rgb: float) -> FloatArray:
    """A color that broadcasts over images."""
    return np.array(rgb, dtype=np.float64)


def vary(rgb: FloatArray, numbers: IntArray, stream: int, reach: float) -> FloatArray:
    """The color, each channel of each digit moved by at most `reach`: (n, 1, 1, 3)."""
    moves = noise(numbers, stream, 2).reshape(-1, 4)[:, :3] * 2 - 1
    return np.asarray(rgb + reach * moves[:, None, None, :])


def draw_ink(strokes: FloatArray, numbers: IntArray) -> Pixels:
    """Dark ink on grainy paper."""
    mask = sharpen(enlarge(strokes), 0.1875, 0.6875)
    grain = (noise(numbers, 1, SIZE) - 0.5) * 24
    paper = vary(color(216, 208, 188), numbers, 2, 40) + grain[..., None]
    return blend(mask, vary(color(84, 76, 104), numbers, 3, 60), paper)


def draw_chalk(strokes: FloatArray, numbers: IntArray) -> Pixels:
    """Broken pale strokes, slanted to the right, on a stained board."""
    mask = slant(sharpen(enlarge(strokes), 0.25, 0.625), 2)
    mask = mask * np.where(noise(numbers, 4, SIZE) < 0.125, 0.5, 1.0)
    stains = soften(soften(spread(noise(numbers, 5, 8), 4)))
    board = vary(color(52, 72, 60), numbers, 6, 44) + (stains * 32)[..., None]
    return blend(mask, vary(color(216, 220, 208), numbers, 7, 36), board)


def draw_neon(strokes: FloatArray, numbers: IntArray) -> Pixels:
    """Bright outlines around a fainter inside, glowing on a dark gradient."""
    body = sharpen(enlarge(strokes), 0.375, 0.625)
    padded = np.pad(body, ((0, 0), (1, 1), (1, 1)))
    across = np.abs(padded[:, 1:-1, 2:] - padded[:, 1:-1, :-2])
    down = np.abs(padded[:, 2:, 1:-1] - padded[:, :-2, 1:-1])
    line = np.clip(np.maximum(across, down), 0, 1)
    glow = np.maximum(np.maximum(line, body * 0.5), soften(soften(line)) * 0.625)
    ramp = np.arange(SIZE) / SIZE
    sky = vary(color(48, 40, 64), numbers, 8, 40) + ramp[:, None, None] * color(32, 16, 48)
    tube = vary(color(184, 176, 208), numbers, 9, 80)
    return blend(glow, tube, sky)


def draw_stamp(strokes: FloatArray, numbers: IntArray) -> Pixels:
    """Thick blurred strokes, slanted to the left and hatched, on pale ruled paper."""
    mask = slant(soften(sharpen(enlarge(strokes), 0.1875, 0.5625)), -5)
    y, x = np.mgrid[0:SIZE, 0:SIZE]
    mask = mask * np.where((x + y) % 4 < 2, 1.0, 0.75)
    ruled = np.where(y % 8 == 3, 32.0, 0.0)
    paper = vary(color(216, 204, 208), numbers, 10, 40) - ruled[None, :, :, None] * color(1.0, 0.5, 0.25)
    return blend(mask, vary(color(96, 56, 64), numbers, 11, 56), paper)


STYLES: Mapping[str, Style] = {"ink": draw_ink, "chalk": draw_chalk, "neon": draw_neon, "stamp": draw_stamp}


def partition(labels: IntArray, parts: int) -> IntArray:
    """The part of each sample: the k-th sample of its class goes to part k mod `parts`."""
    result = np.empty(len(labels), dtype=np.int64)
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        result[members] = np.arange(len(members)) % parts
    return result


def manifest(name: str = DIGITS) -> Manifest:
    """Four domains, ten classes, about 45 samples for each pair; paths name the number of the digit."""
    _, labels = _originals()
    domains = partition(labels, len(STYLES))
    styles = tuple(STYLES)
    rows = (
        Row(styles[domain], str(label), f"{styles[domain]}/{label}/{number:04d}")
        for number, (domain, label) in enumerate(zip(domains.tolist(), labels.tolist(), strict=True))
    )
    return Manifest.from_rows(name, None, rows)


@lru_cache(maxsize=1)
def digit_images() -> Pixels:
    """(1797, 32, 32, 3) uint8, read-only, in the order of `manifest()`."""
    originals, labels = _originals()
    numbers = np.array([int(path.rsplit("/", 1)[1]) for path in manifest().paths])
    domains = partition(labels, len(STYLES))
    rendered = np.empty((len(labels), SIZE, SIZE, 3), dtype=np.uint8)
    for index, draw in enumerate(STYLES.values()):
        mine = np.flatnonzero(domains == index)
        rendered[mine] = draw(originals[mine], mine)
    result: Pixels = rendered[numbers]
    result.flags.writeable = False
    return result


@lru_cache(maxsize=1)
def _originals() -> tuple[FloatArray, IntArray]:
    """The 8x8 images on [0, 1] and their labels."""
    from sklearn.datasets import load_digits  # takes a second to import; most commands never need it

    data = load_digits()
    return np.asarray(data.images, dtype=np.float64) / 16, np.asarray(data.target, dtype=np.int64)

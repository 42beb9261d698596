"""The four looks of the embedded digits: ink, chalk, neon, stamp.

A style turns (n, 8, 8) strokes on [0, 1] into (n, 32, 32, 3) uint8. Weights are dyadic fractions, so that
the arithmetic is exact and every machine draws the same pixels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

SIZE = 32
MARGIN = 4
Pixels = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]
Style = Callable[[Floats, Numbers], Pixels]


def enlarge(strokes: Floats) -> Floats:
    """Bilinear from 8x8 to 24x24 (weights rounded to 64ths), in the middle of an empty 32x32."""
    grid = (np.arange(24) + 0.5) / 3 - 0.5
    low = np.floor(grid).astype(np.int64)
    weight = np.round((grid - low) * 64) / 64
    first, second = np.clip(low, 0, 7), np.clip(low + 1, 0, 7)
    rows = strokes[:, first] * (1 - weight)[:, None] + strokes[:, second] * weight[:, None]
    both = rows[:, :, first] * (1 - weight) + rows[:, :, second] * weight
    return np.pad(both, ((0, 0), (MARGIN, MARGIN), (MARGIN, MARGIN)))


def noise(numbers: Numbers, stream: int, cells: int) -> Floats:
    """(n, cells, cells) uniform numbers on [0, 1), fixed for each digit and stream."""
    out = np.empty((len(numbers), cells, cells))
    for i, number in enumerate(numbers.tolist()):
        # The raw bits of the generator are the same in all versions of NumPy; its distributions need not be.
        raw = np.random.Philox(key=[number, stream]).random_raw(cells * cells)
        out[i] = (raw >> np.uint64(48)).reshape(cells, cells) / 65536
    return out


def sharpen(mask: Floats, low: float, high: float) -> Floats:
    """Stretch [low, high] to [0, 1]."""
    return np.clip((mask - low) / (high - low), 0, 1)


def spread(values: Floats, cell: int) -> Floats:
    """Repeat each value as a square of `cell` pixels."""
    return values.repeat(cell, axis=1).repeat(cell, axis=2)


def soften(mask: Floats) -> Floats:
    """Blur with weights 1 2 1 in both directions."""
    padded = np.pad(mask, ((0, 0), (1, 1), (1, 1)), mode="edge")
    rows = (padded[:, :-2] + 2 * padded[:, 1:-1] + padded[:, 2:]) / 4
    return np.asarray((rows[:, :, :-2] + 2 * rows[:, :, 1:-1] + rows[:, :, 2:]) / 4)


def slant(mask: Floats, pixels: int) -> Floats:
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


def blend(mask: Floats, ink: Floats, paper: Floats) -> Pixels:
    """`ink` where the mask is 1, `paper` where it is 0; colours on [0, 255], broadcast to (n, 32, 32, 3)."""
    mixed = paper + mask[..., None] * (ink - paper)
    return np.clip(np.floor(mixed + 0.5), 0, 255).astype(np.uint8)


def colour(*rgb: float) -> Floats:
    """A colour that broadcasts over images."""
    return np.array(rgb, dtype=np.float64)


def draw_ink(strokes: Floats, numbers: Numbers) -> Pixels:
    """Dark blue ink on slightly grainy paper."""
    mask = sharpen(enlarge(strokes), 0.25, 0.75)
    grain = (noise(numbers, 1, SIZE) - 0.5) * 24
    paper = colour(240, 232, 212) + grain[..., None]
    return blend(mask, colour(24, 28, 80), paper)


def draw_chalk(strokes: Floats, numbers: Numbers) -> Pixels:
    """Broken white strokes, slanted, on a stained green board."""
    mask = slant(sharpen(enlarge(strokes), 0.25, 0.625), 6)
    mask = mask * np.where(noise(numbers, 2, SIZE) < 0.3125, 0.25, 1.0)
    stains = soften(soften(spread(noise(numbers, 3, 8), 4)))
    board = colour(24, 72, 52) + (stains * 64)[..., None]
    return blend(mask, colour(244, 244, 236), board)


def draw_neon(strokes: Floats, numbers: Numbers) -> Pixels:
    """Glowing outlines on a dark gradient."""
    body = sharpen(enlarge(strokes), 0.375, 0.625)
    padded = np.pad(body, ((0, 0), (1, 1), (1, 1)))
    across = np.abs(padded[:, 1:-1, 2:] - padded[:, 1:-1, :-2])
    down = np.abs(padded[:, 2:, 1:-1] - padded[:, :-2, 1:-1])
    line = np.clip(np.maximum(across, down) * 1.5, 0, 1)
    glow = np.maximum(line, soften(soften(line)) * 0.75)
    ramp = np.arange(SIZE) / SIZE
    sky = colour(20, 4, 44) + ramp[:, None, None] * colour(48, 8, 72)
    tube = colour(255, 48, 160) + ramp[None, :, None] * colour(-192, 176, 80)
    return blend(glow, tube, np.broadcast_to(sky, (*glow.shape, 3)))


def draw_stamp(strokes: Floats, numbers: Numbers) -> Pixels:
    """Pale strokes left out of a field of red dots."""
    mask = slant(soften(sharpen(enlarge(strokes), 0.25, 0.75)), -8)
    y, x = np.mgrid[0:SIZE, 0:SIZE]
    dots = (((x + y) % 4 < 2) ^ ((x - y) % 4 < 2)).astype(np.float64)
    field = colour(176, 32, 40) + dots[None, :, :, None] * colour(72, 120, 96)
    return blend(mask, colour(250, 214, 160), field)


STYLES: Mapping[str, Style] = {"ink": draw_ink, "chalk": draw_chalk, "neon": draw_neon, "stamp": draw_stamp}

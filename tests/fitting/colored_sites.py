"""Folders of small colored images from several sites, and options of a quick fit on them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from tests.training.runs import CPU

COLORS = {"red": (200, 40, 40), "green <b>": (40, 200, 40), "blue|x": (40, 40, 200)}


def sites(root: Path, counts: dict[str, dict[str, int]]) -> Path:
    """Colored noise: the class is the color, each site adds a tint of its own."""
    rng = np.random.default_rng(0)
    for number, (site, row) in enumerate(counts.items()):
        for name, n in row.items():
            (root / site / name).mkdir(parents=True, exist_ok=True)
            for i in range(n):
                color = np.array(COLORS[name]) + 15 * number
                pixels = np.clip(color + rng.normal(0, 30, (20, 24, 3)), 0, 255).astype(np.uint8)
                Image.fromarray(pixels).save(root / site / name / f"{i}.png")
    return root


COUNTS = {
    "north": {"red": 20, "green <b>": 6, "blue|x": 3},
    "south": {"red": 8, "green <b>": 10, "blue|x": 3},
    "west": {"red": 9, "green <b>": 1, "blue|x": 12},
}
QUICK: dict[str, Any] = {"steps": 12, "method": "erm", "hparams": {"batch_size": 4, "lr": 5e-3}, "runtime": CPU}

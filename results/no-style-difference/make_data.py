"""Two data sets whose domains do not differ in style: `make_data.py PACS.zip OUT` writes photo.csv and digits.csv.

photo: the photographs of PACS, each put into one of three parts at random (seed 0), class by class.
digits: scikit-learn's handwritten digits, each put into one of three parts likewise; the parts are printed in nearly
the same ink (90, 95 and 100% black) on white paper.
"""

from __future__ import annotations

import csv
import sys
import zipfile
from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits

PARTS = ("first", "second", "third")


def parts(labels: list[str], seed: int = 0) -> list[str]:
    """A part for each sample, at random and with equal shares of each class."""
    rng = np.random.default_rng(seed)
    found = np.empty(len(labels), dtype=np.int64)
    for label in sorted(set(labels)):
        members = np.flatnonzero(np.array(labels) == label)
        found[rng.permutation(members)] = np.arange(len(members)) % len(PARTS)
    return [PARTS[i] for i in found]


def write_table(out: Path, rows: list[tuple[str, str, str]]) -> None:
    """A CSV file with the columns that `longshift` reads."""
    with out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("path", "label", "domain"))
        writer.writerows(rows)


def photographs(archive: Path, out: Path) -> None:
    """Unpack the photographs and list them."""
    with zipfile.ZipFile(archive) as packed:
        names = sorted(name for name in packed.namelist() if "/photo/" in name and not name.endswith("/"))
        packed.extractall(out, names)
    labels = [name.split("/")[-2] for name in names]
    write_table(out / "photo.csv", list(zip(names, labels, parts(labels), strict=True)))


def digits(out: Path) -> None:
    """Draw the digits, 32 x 32 pixels, and list them."""
    data = load_digits()
    labels = [str(label) for label in data.target]
    rows = []
    (out / "digits").mkdir(exist_ok=True)
    for number, (strokes, label, part) in enumerate(zip(data.images, labels, parts(labels), strict=True)):
        ink = 0.9 + 0.05 * PARTS.index(part)
        large = Image.fromarray(np.uint8(255 * (1 - ink * strokes / 16))).resize((32, 32), Image.Resampling.BILINEAR)
        path = f"digits/{number:04d}.png"
        large.convert("RGB").save(out / path)
        rows.append((path, label, part))
    write_table(out / "digits.csv", rows)


if __name__ == "__main__":
    archive, out = Path(sys.argv[1]), Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    photographs(archive, out)
    digits(out)

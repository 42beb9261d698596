"""PACS at 192 px as WebP of quality 62: `re_encode.py PACS.zip PACS-192.zip`; names and folders are kept.

The runs of style-choice/, style-confirm/ and style-for-others/ were trained on these images. With Pillow 13 the file
has the data version 7ac78156cc77... that the table of style-for-others/ names; another encoder may give other bits.
"""

from __future__ import annotations

import io
import sys
import zipfile
from pathlib import Path

from PIL import Image

SIDE, QUALITY = 192, 62


def re_encode(image: bytes) -> bytes:
    """The image as a square of `SIDE` pixels in WebP."""
    small = Image.open(io.BytesIO(image)).convert("RGB").resize((SIDE, SIDE), Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    small.save(buffer, "WEBP", quality=QUALITY, method=4)
    return buffer.getvalue()


def main(source: Path, out: Path) -> None:
    """Write `out` with all images of `source`."""
    with zipfile.ZipFile(source) as given, zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as made:
        names = [name for name in given.namelist() if not name.endswith("/")]
        for done, name in enumerate(names, 1):
            made.writestr(name, re_encode(given.read(name)))
            if done % 1000 == 0 or done == len(names):
                print(f"{done:,} of {len(names):,} images")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))

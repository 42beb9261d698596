"""Small pictures inside a page, as data URIs, each with a line or two of text."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup
from PIL import Image

from longshift.data import MOST_BYTES, BadImage, decode
from longshift.io import read_limited
from longshift.report.html_page import fragment

SIDE = 96


@dataclass(frozen=True)
class Captioned:
    """An image file (or "" for samples without one) with a title and a fainter second line."""

    file: str
    title: str
    note: str


def thumbnail(image: Image.Image) -> str:
    """A small copy of an image as a data URI."""
    image = image.convert("RGB")
    image.thumbnail((SIDE, SIDE))
    # Small drawings stay sharp as PNG; photographs are a tenth of the size as JPEG.
    kind, options = ("png", {"optimize": True}) if max(image.size) < SIDE else ("jpeg", {"quality": 80})
    out = io.BytesIO()
    image.save(out, kind, **options)
    return f"data:image/{kind};base64,{base64.b64encode(out.getvalue()).decode('ascii')}"


def gallery(samples: Sequence[Captioned]) -> Markup:
    """Pictures side by side; a file that cannot be read has its texts only."""
    return fragment("gallery.html.j2", pictures=[(_uri(sample.file), sample) for sample in samples])


def _uri(file: str) -> str:
    if not file:
        return ""
    try:
        return thumbnail(decode(read_limited(file, MOST_BYTES)))
    except (BadImage, OSError):
        return ""

"""From the bytes of an image file to pixels."""

from __future__ import annotations

import functools
import io
import threading
import warnings
from contextlib import nullcontext

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageOps, UnidentifiedImageError

# Pillow's own limit against decompression bombs: a quarter of a gigabyte of RGB.
PIXEL_LIMIT = 1024 * 1024 * 1024 // 4 // 3
# What Pillow may decode, whatever a file is called. Others have readers that start programs (EPS: Ghostscript).
FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "DIB", "TIFF", "GIF", "PPM", "JPEG2000", "AVIF", "HEIF", "JXL")
LARGE = 1 << 24  # pixels
BAND = 64  # rows of a 16-bit picture that are converted at a time
MAGIC = (b"\xff\xd8\xff", b"\x89PNG", b"RIFF", b"BM", b"II*\0", b"MM\0*", b"GIF8", b"P6", b"P5", b"P3")

BRIGHTEST = "brightest of 16 bits"  # in `info` of a decoded picture that had 16 bits

EARLY_END = ("truncat", "end of file", "eof", "not enough")


_one_large = threading.Lock()
# Pillow warns from its limit on; here it is an error with the name of the file.
warnings.filterwarnings("ignore", category=Image.DecompressionBombWarning)


class BadImage(Exception):
    """An image that cannot be used: `kind` is one of the kinds of `data verify`.

    Args:
        kind: One of the kinds of `data verify`, such as "truncated".
        detail: One phrase.

    Example:
        >>> try:
        ...     decode(b"not an image")
        ... except BadImage as bad:
        ...     print(bad.kind)
        not an image
    """

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(detail)
        self.kind, self.detail = kind, detail


def decode(data: bytes) -> Image.Image:
    """Decode an image file to RGB: upright (EXIF), first frame, transparency and palettes flattened on white.

    Args:
        data: The bytes of the file.

    Returns:
        A Pillow image in mode RGB. Of 16-bit gray, the upper eight bits are kept.

    Raises:
        BadImage: If the bytes are not an image, end too early, or have more than 89 million pixels.

    Example:
        >>> import io
        >>> from PIL import Image
        >>> file = io.BytesIO()
        >>> Image.new("L", (4, 2), 255).save(file, "png")
        >>> decode(file.getvalue()).getpixel((0, 0))
        (255, 255, 255)
    """
    if not data:
        raise BadImage("zero-byte", "the file has 0 bytes")
    try:
        image = Image.open(io.BytesIO(data), formats=_formats())
        width, height = image.size
        if width * height > PIXEL_LIMIT:
            raise BadImage("decompression bomb", f"{width}x{height} pixels, at most {PIXEL_LIMIT} are read")
        # Many threads decode, but only one at a time a picture that takes hundreds of megabytes.
        with _one_large if width * height > LARGE else nullcontext():
            image.load()
            return _to_rgb(ImageOps.exif_transpose(image))
    except Image.DecompressionBombError as error:
        raise BadImage("decompression bomb", str(error)) from error
    except UnidentifiedImageError as error:
        if data.startswith(MAGIC):
            raise BadImage("truncated", f"{len(data)} bytes that begin like an image but end too early") from error
        raise BadImage("not an image", f"no image format begins with {data[:12]!r}") from error
    except BadImage:
        raise
    except Exception as error:  # the decoders raise nearly anything on damaged files
        message = str(error) or type(error).__name__
        early = _shorter_than_stated(data) or any(word in message.lower() for word in EARLY_END)
        raise BadImage("truncated" if early else "unreadable", message) from error


@functools.cache
def _formats() -> tuple[str, ...]:
    """Those that this Pillow has; a name that it does not know is an error."""
    Image.init()
    return tuple(name for name in FORMATS if name in Image.OPEN)


def _shorter_than_stated(data: bytes) -> bool:
    """Whether a WebP file ends before the length in its header."""
    return data.startswith(b"RIFF") and len(data) < 8 + int.from_bytes(data[4:8], "little")


def _to_rgb(image: Image.Image) -> Image.Image:
    if image.mode == "RGB":
        return image
    if image.mode == "F":
        raise BadImage("unreadable", "pixels are floating point numbers, whose range of brightness is unknown")
    if image.mode.startswith("I"):  # 16 bits of gray: keep the upper eight, where a plain conversion would clip
        brightest, gray = 0, np.empty((image.height, image.width), dtype=np.uint8)
        for top in range(0, image.height, BAND):  # in bands: a copy with wider numbers takes a lot of memory
            bottom = min(top + BAND, image.height)
            values = np.clip(np.asarray(image.crop((0, top, image.width, bottom))), 0, 65535)
            brightest = max(brightest, int(values.max()))
            gray[top:bottom] = values >> 8
        found = Image.fromarray(gray).convert("RGB")
        found.info[BRIGHTEST] = brightest
        return found
    if image.has_transparency_data:
        layer = image.convert("RGBA")
        paper = Image.new("RGBA", layer.size, (255, 255, 255, 255))
        return Image.alpha_composite(paper, layer).convert("RGB")
    return image.convert("RGB")


def resize(image: Image.Image, size: int) -> npt.NDArray[np.uint8]:
    """Resize the whole image to a square with a bilinear filter, antialiased if it gets smaller.

    Args:
        image: An RGB image.
        size: Pixels per side.

    Returns:
        An array (size, size, 3) of uint8.

    Example:
        >>> from PIL import Image
        >>> resize(Image.new("RGB", (40, 20)), 8).shape
        (8, 8, 3)
    """
    if image.size != (size, size):
        image = image.resize((size, size), Image.Resampling.BILINEAR)
    return np.asarray(image, dtype=np.uint8)

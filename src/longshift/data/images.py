"""The images of a dataset: where their bytes come from (a folder, a .zip or a table), and from bytes to pixels."""

from __future__ import annotations

import bisect
import functools
import io
import itertools
import math
import os
import threading
import warnings
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageOps, UnidentifiedImageError

from longshift.data import digits
from longshift.data.folders import open_zip
from longshift.data.manifest import Manifest
from longshift.errors import LongshiftError
from longshift.io import read_limited

# Pillow's own limit against decompression bombs: a quarter of a gigabyte of RGB.
PIXEL_LIMIT = 1024 * 1024 * 1024 // 4 // 3
# What Pillow may decode, whatever a file is called. Others have readers that start programs (EPS: Ghostscript).
FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "DIB", "TIFF", "GIF", "PPM", "JPEG2000", "AVIF", "HEIF", "JXL")
LARGE = 1 << 24  # pixels
BAND = 64  # rows of a 16-bit picture that are converted at a time
MAGIC = (b"\xff\xd8\xff", b"\x89PNG", b"RIFF", b"BM", b"II*\0", b"MM\0*", b"GIF8", b"P6", b"P5", b"P3")
BRIGHTEST = "brightest of 16 bits"  # in `info` of a decoded picture that had 16 bits
EARLY_END = ("truncat", "end of file", "eof", "not enough")
MOST_BYTES = 1 << 28  # of one image file
KEPT_BYTES = 1 << 30  # of a table that are kept in memory
SMALLEST = 16  # pixels that a network is given at least
LOOKED_AT = 32  # images of a dataset
MOST_KEPT = 8  # times the shorter side of an image whose middle is wanted

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


def decode(data: bytes, least: int = 0) -> Image.Image:
    """Decode an image file to RGB: upright (EXIF), first frame, transparency and palettes flattened on white.

    Args:
        data: The bytes of the file.
        least: A JPEG may be decoded at a half, a quarter or an eighth of its size, which is much faster, as long as
            both sides have this many pixels; 0 for its full size.

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
        if least:
            image.draft(None, (least, least))
        # Many threads decode, but only one at a time a picture that takes hundreds of megabytes.
        with _one_large if image.width * image.height > LARGE else nullcontext():
            image.load()
            return to_rgb(ImageOps.exif_transpose(image))
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


def to_rgb(image: Image.Image) -> Image.Image:
    """An image in mode RGB, flattened on white."""
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


@dataclass(frozen=True)
class Preprocessing:
    """How an image becomes a square; by default the whole image is resized, as DomainBed does.

    Attributes:
        interpolation: Filter, antialiased if the image gets smaller.
        crop: Side of the square that is kept, as a share of the resized image's shorter side.
        keep_ratio: Keep the ratio of width to height, and cut off what is longer.
    """

    interpolation: Literal["bilinear", "bicubic"] = "bilinear"
    crop: float = 1.0
    keep_ratio: bool = False

    def __post_init__(self) -> None:
        """Raise for a crop that is no share."""
        if not 0 < self.crop <= 1:
            raise ValueError(f"expected a crop above 0 and up to 1, got {self.crop}")

    def side(self, size: int) -> int:
        """Pixels of the shorter side before the crop."""
        return math.floor(size / self.crop)


PLAIN = Preprocessing()


def resize(image: Image.Image, size: int, how: Preprocessing = PLAIN) -> npt.NDArray[np.uint8]:
    """Resize an image to a square; by default the whole image with a bilinear filter.

    Args:
        image: An RGB image.
        size: Pixels per side.
        how: Filter and crop.

    Returns:
        An array (size, size, 3) of uint8.

    Example:
        >>> from PIL import Image
        >>> resize(Image.new("RGB", (40, 20)), 8).shape
        (8, 8, 3)
    """
    side = how.side(size)
    resized = (side, side)
    if how.keep_ratio:
        shorter = min(image.size)
        # A line of pixels would not fit into memory when its one pixel becomes 224.
        image = _middle(image, *(min(length, MOST_KEPT * shorter) for length in image.size))
        resized = (int(side * image.width / shorter), int(side * image.height / shorter))
    image = image.resize(resized, Image.Resampling[how.interpolation.upper()])
    return np.asarray(_middle(image, size, size), dtype=np.uint8)


def _middle(image: Image.Image, width: int, height: int) -> Image.Image:
    """The middle of an image, rounded as in torchvision."""
    left, top = round((image.width - width) / 2), round((image.height - height) / 2)
    return image.crop((left, top, left + width, top + height))


def read_pixels(data: bytes, size: int, how: Preprocessing = PLAIN) -> npt.NDArray[np.uint8]:
    """Decode an image file and resize it to (size, size, 3); raises `BadImage`."""
    # With twice the pixels, the filter of `resize` still decides.
    return resize(decode(data, 2 * how.side(size)), size, how)


class ImageSource(Protocol):
    """Reads images by their path in the manifest; safe to use from several threads."""

    def read(self, path: str) -> bytes:
        """All bytes of an image; BadImage if they cannot be read."""
        ...

    def stamp(self, path: str) -> str:
        """A short text that changes when the image does, found without reading it."""
        ...


class FolderSource:
    """Files below a folder; a change shows in their size or time."""

    def __init__(self, root: Path) -> None:
        self.root = os.fspath(root)

    def read(self, path: str) -> bytes:
        """All bytes of a file."""
        try:
            return read_limited(os.path.join(self.root, path), MOST_BYTES)
        except OSError as error:
            raise BadImage("unreadable", error.strerror or str(error)) from error

    def stamp(self, path: str) -> str:
        """Size and times of the last change."""
        try:
            status = os.stat(os.path.join(self.root, path))
        except OSError as error:
            return f"missing: {error.strerror}"
        # The last: a copy may keep the time of its original, but nothing can set this one. On Windows it is the time of
        # creation, so a change that keeps size and time is not seen there.
        return f"{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"


class ZipSource:
    """Entries of an archive, read in place; a change shows in their size or checksum."""

    def __init__(self, archive: zipfile.ZipFile, prefix: str) -> None:
        self.archive, self.prefix = archive, prefix
        # Python 3.12 and 3.13 skip the extra field of an entry relative to where another thread reads. A lock is also
        # faster than a handle per thread: reading is 1 % of decoding, and each handle would read the index again.
        self.lock = threading.Lock()

    def read(self, path: str) -> bytes:
        """All bytes of an entry, its checksum tested."""
        try:
            entry = self.archive.getinfo(self.prefix + path)
            if entry.file_size > MOST_BYTES:
                size = f"{entry.file_size / 2**20:.0f} MiB"
                raise BadImage("decompression bomb", f"{size} when unpacked, at most {MOST_BYTES >> 20} MiB are read")
            with self.lock:
                return self.archive.read(entry)  # never more than the size that was just compared
        except BadImage:
            raise
        except Exception as error:  # zipfile raises many kinds; zlib, bz2 and lzma have exceptions of their own
            raise BadImage("unreadable", f"in the archive: {error}") from error

    def stamp(self, path: str) -> str:
        """Size and checksum."""
        try:
            entry = self.archive.getinfo(self.prefix + path)
        except KeyError:
            return "missing"
        return f"{entry.file_size} {entry.CRC:08x}"


class TableSource:
    """Images in a column of Parquet or Arrow files, each at file/row; a change shows in the file's size or time."""

    def __init__(self, root: Path, column: str) -> None:
        self.root, self.column = root, column
        self.files = FolderSource(root)
        self.lock = threading.Lock()
        self.opened: dict[str, tuple[list[int], Callable[[int], Any]]] = {}  # first row of each block, and the blocks
        self.kept: OrderedDict[tuple[str, int], Any] = OrderedDict()
        self.stamps: dict[str, str] = {}

    def read(self, path: str) -> bytes:
        """The bytes of a row."""
        file, _, row = path.rpartition("/")
        try:
            with self.lock:
                value = self._value(file, int(row))
        except Exception as error:  # damaged files raise nearly anything
            raise BadImage("unreadable", f"in the table: {error}") from error
        data = value.get("bytes") if isinstance(value, dict) else value
        if data is None:
            raise BadImage("unreadable", "the table has no bytes of it")
        return bytes(data)

    def _value(self, file: str, row: int) -> Any:
        if file not in self.opened:
            self.opened[file] = self._open(os.path.join(self.root, file) if file else os.fspath(self.root))
        starts, block_of = self.opened[file]
        number = bisect.bisect(starts, row) - 1
        key = (file, number)
        if key not in self.kept:  # a Parquet file cannot be read row by row
            self.kept[key] = block_of(number)
            while len(self.kept) > 1 and sum(block.nbytes for block in self.kept.values()) > KEPT_BYTES:
                self.kept.popitem(last=False)
        self.kept.move_to_end(key)
        return self.kept[key][row - starts[number]].as_py()

    def _open(self, path: str) -> tuple[list[int], Callable[[int], Any]]:
        import pyarrow as pa
        from pyarrow import parquet

        if path.endswith(".arrow"):
            chunks = pa.ipc.open_stream(pa.memory_map(path)).read_all().column(self.column).chunks
            return [0, *itertools.accumulate(map(len, chunks))], chunks.__getitem__
        file = parquet.ParquetFile(path)
        counts = (file.metadata.row_group(number).num_rows for number in range(file.num_row_groups))
        return [0, *itertools.accumulate(counts)], lambda k: file.read_row_group(k, columns=[self.column]).column(0)

    def stamp(self, path: str) -> str:
        """Size and times of the file."""
        file = path.rpartition("/")[0]
        if file not in self.stamps:
            self.stamps[file] = self.files.stamp(file) if file else FolderSource(self.root.parent).stamp(self.root.name)
        return self.stamps[file]


class DigitsSource:
    """The embedded digits, as PNG files."""

    def __init__(self) -> None:
        self.rows = {path: row for row, path in enumerate(digits.manifest().paths)}

    def read(self, path: str) -> bytes:
        """The bytes of a file."""
        file = io.BytesIO()
        Image.fromarray(digits.digit_images()[self.rows[path]]).save(file, "png")
        return file.getvalue()

    def stamp(self, path: str) -> str:
        """Nothing: they never change."""
        return ""


@contextmanager
def open_source(manifest: Manifest) -> Iterator[ImageSource]:
    """Open the folder, archive or table of a manifest."""
    if manifest.root is None:
        if manifest.paths != digits.manifest().paths:
            raise LongshiftError(f"the dataset {manifest.name} has no files")
        yield DigitsSource()
    elif manifest.image_column:
        yield TableSource(manifest.root, manifest.image_column)
    elif manifest.root.is_dir():
        yield FolderSource(manifest.root)
    else:
        with open_zip(manifest.root) as archive:
            yield ZipSource(archive, manifest.prefix)


def typical_side(manifest: Manifest) -> int:
    """Median of the shorter sides of some images; 0 if none can be read, which other checks report."""
    if manifest.root is None:
        return digits.SIZE
    chosen = np.unique(np.linspace(0, len(manifest) - 1, min(LOOKED_AT, len(manifest))).astype(int))
    sides = []
    with open_source(manifest) as source:
        for i in chosen:
            with suppress(BadImage):
                sides.append(min(decode(source.read(manifest.paths[i])).size))
    return int(np.median(sides)) if sides else 0


def fitting_size(manifest: Manifest, most: int) -> int:
    """The image size that loses nothing and makes nothing up: the typical side, up to `most` pixels."""
    return min(max(typical_side(manifest) or most, SMALLEST), most)

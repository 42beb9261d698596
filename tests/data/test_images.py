"""Decoding and resizing of images in every supported format."""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from timm.data.transforms_factory import create_transform

from longshift.data.images import BadImage, Preprocessing, decode, read_pixels, resize
from tests.data.trees import encoded, picture


def saved(image: Image.Image, format: str = "PNG", **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, format, **options)
    return buffer.getvalue()


def pixels(data: bytes) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    image = decode(data)
    assert image.mode == "RGB"
    return np.asarray(image)


@pytest.mark.parametrize("format", ["PNG", "BMP", "TIFF", "PPM"])
def test_lossless_formats_come_back_exactly(format: str) -> None:
    np.testing.assert_array_equal(pixels(encoded(picture(1), format)), picture(1))


@pytest.mark.parametrize(("width", "height", "size"), [(97, 61, 16), (20, 33, 64), (50, 50, 50)])
def test_resize_is_bilinear_with_antialiasing(width: int, height: int, size: int) -> None:
    """Against another implementation of the same filter; they differ by the rounding of fixed-point weights."""
    source = picture(2, width, height)
    tensor = torch.from_numpy(source).permute(2, 0, 1)[None].double()
    expected = torch.nn.functional.interpolate(tensor, (size, size), mode="bilinear", antialias=True)[0].permute(
        1, 2, 0
    )
    found = resize(decode(encoded(source)), size)
    assert found.shape == (size, size, 3)
    assert np.abs(found - expected.numpy()).max() <= 1.01


@pytest.mark.parametrize("mode", ["center", "squash"])
@pytest.mark.parametrize(("interpolation", "crop"), [("bicubic", 0.875), ("bilinear", 0.95), ("bicubic", 1.0)])
@pytest.mark.parametrize(("width", "height"), [(97, 61), (33, 150), (80, 80)])
def test_preprocessing_is_timms(width: int, height: int, interpolation: Any, crop: float, mode: str) -> None:
    image = Image.fromarray(picture(2, width, height))
    timms = create_transform(
        (3, 56, 56), interpolation=interpolation, crop_pct=crop, crop_mode=mode, normalize=False
    )  # fmt: skip
    found = resize(image, 56, Preprocessing(interpolation, crop, keep_ratio=mode == "center"))
    expected = np.asarray(timms(image)).transpose(1, 2, 0)
    assert np.abs(found.astype(int) - expected.astype(int)).max() == 0


def test_a_narrow_image_takes_little_memory() -> None:
    assert resize(Image.new("RGB", (1, 60_000)), 224, Preprocessing(keep_ratio=True)).shape == (224, 224, 3)


def test_a_large_jpeg_is_decoded_at_a_fraction_of_its_size() -> None:
    smooth = Image.fromarray(picture(3, 12, 10)).resize((1200, 1000), Image.Resampling.BICUBIC)
    data = saved(smooth, "JPEG", quality=95)
    assert decode(data, 200).size == (300, 250)
    assert decode(data).size == decode(data, 600).size == (1200, 1000)
    difference = read_pixels(data, 100).astype(float) - resize(decode(data), 100)
    assert np.abs(difference).max() <= 4


def test_transparency_is_flattened_on_white() -> None:
    rgba = np.zeros((1, 3, 4), dtype=np.uint8)
    rgba[0, :, 0] = 200
    rgba[0, :, 3] = [0, 51, 255]
    expected = [[[255, 255, 255], [244, 204, 204], [200, 0, 0]]]  # white * (1 - a) + color * a
    np.testing.assert_array_equal(pixels(saved(Image.fromarray(rgba))), expected)


def test_gray_with_alpha_and_palettes() -> None:
    gray = Image.fromarray(np.array([[[10, 255], [10, 0]]], dtype=np.uint8))
    np.testing.assert_array_equal(pixels(saved(gray)), [[[10] * 3, [255] * 3]])
    palette = Image.new("P", (2, 1))
    palette.putpalette([1, 2, 3, 250, 100, 50])
    palette.putdata([0, 1])
    np.testing.assert_array_equal(pixels(saved(palette, "GIF")), [[[1, 2, 3], [250, 100, 50]]])
    np.testing.assert_array_equal(pixels(saved(palette, transparency=0)), [[[255] * 3, [250, 100, 50]]])


def test_sixteen_bits_of_gray_keep_their_brightness() -> None:
    values = np.array([[0, 256, 32768, 65535]], dtype=np.uint16)
    np.testing.assert_array_equal(pixels(saved(Image.fromarray(values)))[0, :, 0], [0, 1, 128, 255])


def test_cameras_that_were_held_sideways() -> None:
    image = Image.fromarray(picture(3, 6, 4))
    exif = Image.Exif()
    exif[0x0112] = 6  # the top of the picture is at the right of the stored pixels
    np.testing.assert_array_equal(pixels(saved(image, exif=exif)), np.rot90(picture(3, 6, 4), -1))


def test_first_frame_of_an_animation() -> None:
    frames = [Image.new("RGB", (2, 2), color) for color in ("red", "blue")]
    data = saved(frames[0], "GIF", save_all=True, append_images=frames[1:])
    np.testing.assert_array_equal(pixels(data)[0, 0], [255, 0, 0])


def bomb(width: int, height: int) -> bytes:
    """A PNG of a hundred bytes that claims a huge size."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 9)) + chunk(b"IEND", b"")
    )


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("zero-byte", b""),
        ("not an image", b"hello, this is text\n"),
        ("truncated", encoded(picture(4, 64, 64), "JPEG")[:-400]),
        ("truncated", encoded(picture(4, 64, 64), "PNG")[:-4000]),
        ("truncated", encoded(picture(4, 64, 64), "WEBP")[:-400]),
        ("truncated", encoded(picture(4, 64, 64), "BMP")[:-400]),
        ("truncated", encoded(picture(4, 64, 64), "GIF")[:-400]),
        ("truncated", encoded(picture(4, 64, 64), "JPEG")[:20]),
        ("decompression bomb", bomb(10_000, 10_000)),
        ("decompression bomb", bomb(60_000, 60_000)),
    ],
)
def test_kinds_of_bad_images(kind: str, data: bytes) -> None:
    with pytest.raises(BadImage) as caught:
        decode(data)
    assert caught.value.kind == kind, caught.value.detail
    assert caught.value.detail


def test_floating_point_pixels_are_refused() -> None:
    with pytest.raises(BadImage, match="floating point"):
        decode(saved(Image.fromarray(np.ones((2, 2), dtype=np.float32)), "TIFF"))

"""Names of files: which are images, which are hidden, and lists of them in messages."""

from __future__ import annotations

import os

IMAGE_SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff", ".gif", ".ppm", ".pgm", ".jfif"})
# Pictures, but of formats that are not read: people must know that they are left out.
OTHER_FORMATS = frozenset(
    {
        ".heic",
        ".heif",
        ".avif",
        ".jp2",
        ".j2k",
        ".jxl",
        ".dcm",
        ".dicom",
        ".nii",
        ".svs",
        ".svg",
        ".dng",
        ".cr2",
        ".nef",
    }
)


def is_image(name: str) -> bool:
    """Whether the file's suffix is one of an image, in any case."""
    return os.path.splitext(name)[1].lower() in IMAGE_SUFFIXES


def is_other_format(name: str) -> bool:
    """Whether the file is a picture of a format that is not read, by its suffix."""
    return os.path.splitext(name)[1].lower() in OTHER_FORMATS


def is_hidden(name: str) -> bool:
    """Hidden files and the folder that macOS adds to archives."""
    return name.startswith(".") or name == "__MACOSX"

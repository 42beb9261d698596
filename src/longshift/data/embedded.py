"""The datasets that are part of the package. Each is named by a word wherever a dataset is named."""

from __future__ import annotations

from pathlib import Path

DIGITS = "digits"
PACS_FEATURES = "pacs-features"
EMBEDDED = (DIGITS, PACS_FEATURES)

_PACS_FEATURES_FILE = Path(__file__).with_name("pacs_features.npz")  # pacs_features.md tells where it comes from


def vector_file(data: str | Path) -> Path:
    """The file of vectors that a dataset is: that of an embedded one, else the given path."""
    return _PACS_FEATURES_FILE if str(data) == PACS_FEATURES else Path(data).expanduser()

"""What a domain dataset is: manifests, the embedded digits, benchmarks, and the store of decoded images."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from longshift.data.load import load_dataset
    from longshift.data.manifest import Manifest
    from longshift.data.store import Store, open_store

__all__ = ["Manifest", "Store", "load_dataset", "open_store"]

_WHERE = {
    "Manifest": "longshift.data.manifest",
    "Store": "longshift.data.store",
    "load_dataset": "longshift.data.load",
    "open_store": "longshift.data.store",
}


def __getattr__(name: str) -> Any:
    """Import on first use: who only wants the losses must not wait for readers of images and tables."""
    if name not in _WHERE:
        raise AttributeError(f"module 'longshift.data' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_WHERE[name]), name)

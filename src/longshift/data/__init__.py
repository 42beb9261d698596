"""What a domain dataset is: manifests, the embedded digits, benchmarks, and the store of decoded images."""

from longshift.data.load import load_dataset
from longshift.data.manifest import Manifest
from longshift.data.store import Store, open_store

__all__ = ["Manifest", "Store", "load_dataset", "open_store"]

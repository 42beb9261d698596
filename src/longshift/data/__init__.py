"""What a dataset is: manifests, readers, benchmarks, the embedded datasets, the cache of decoded images."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

"""Losses as pure functions on tensors, always computed in full precision, and as modules for any training loop."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

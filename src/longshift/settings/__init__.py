"""How imbalance is made: published and generated settings, and the splits they give."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

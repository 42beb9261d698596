"""Analysis of trained models and runs: discrepancies, the terms of the bound, correlations, significance tests."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

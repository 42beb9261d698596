"""Many runs: the sweep file, its jobs and their states, launchers, the table of runs, selection."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

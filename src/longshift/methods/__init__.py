"""One file per method, and the registry that finds them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longshift.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from longshift.methods import catalogue as catalogue, info as info, plugins as plugins, registry as registry
    from longshift.methods.base import Losses as Losses, Method as Method
    from longshift.methods.batch import Batch as Batch
    from longshift.methods.plugins import is_file_spec as is_file_spec
    from longshift.methods.problem import Problem as Problem
    from longshift.methods.registry import get as get, register as register
    from longshift.methods.search_space import (
        MethodConfig as MethodConfig,
        Value as Value,
        hp as hp,
        log_uniform as log_uniform,
    )

__all__, __getattr__, __dir__ = lazy_exports(__name__)

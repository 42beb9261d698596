"""One file per method, and the registry that finds them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longshift.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from longshift.methods.base import Losses as Losses, Method as Method, Problem as Problem
    from longshift.methods.batch import Batch as Batch
    from longshift.methods.hyper_parameters import hp as hp
    from longshift.methods.info import MethodInfo as MethodInfo, method_infos as method_infos
    from longshift.methods.method_config import MethodConfig as MethodConfig, unused as unused
    from longshift.methods.method_creation import create_method as create_method, list_methods as list_methods
    from longshift.methods.registry import all_methods as all_methods, get_method as get_method, register as register
    from longshift.methods.search_spaces import (
        choice as choice,
        fixed as fixed,
        int_uniform as int_uniform,
        log_uniform as log_uniform,
        power as power,
        uniform as uniform,
    )

if TYPE_CHECKING:  # shared with the other packages of longshift, not public
    from longshift.methods.info import (
        FAMILIES as FAMILIES,
        check_names as check_names,
        cost_cell as cost_cell,
        cost_note as cost_note,
        method_summary as method_summary,
    )
    from longshift.methods.method_catalog import (
        format_value as format_value,
        hyper_parameter_rows as hyper_parameter_rows,
        method_details as method_details,
    )
    from longshift.methods.method_config import of_style as of_style
    from longshift.methods.registry import methods_without_presets as methods_without_presets
    from longshift.methods.search_spaces import Value as Value

__all__, __getattr__, __dir__ = lazy_exports(__name__)

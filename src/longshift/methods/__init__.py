"""One file per method, and the registry that finds them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longshift.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from longshift.methods.base import Losses as Losses, Method as Method, Problem as Problem
    from longshift.methods.batch import Batch as Batch
    from longshift.methods.catalogue import (
        format_value as format_value,
        method_details as method_details,
        methods_page as methods_page,
    )
    from longshift.methods.hyper_parameters import (
        MethodConfig as MethodConfig,
        Value as Value,
        choice as choice,
        fixed as fixed,
        hp as hp,
        int_uniform as int_uniform,
        log_uniform as log_uniform,
        of_style as of_style,
        power as power,
        uniform as uniform,
        unused as unused,
    )
    from longshift.methods.info import (
        FAMILIES as FAMILIES,
        MethodInfo as MethodInfo,
        cost_cell as cost_cell,
        cost_note as cost_note,
        method_infos as method_infos,
        method_summary as method_summary,
    )
    from longshift.methods.registry import (
        all_methods as all_methods,
        get_method as get_method,
        methods_without_presets as methods_without_presets,
        register as register,
    )

__all__, __getattr__, __dir__ = lazy_exports(__name__)

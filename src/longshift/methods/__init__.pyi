from .base import Batch as Batch, Losses as Losses, Method as Method, Problem as Problem

# Used by the other packages of longshift; not public.
from .catalog import (
    FAMILIES as FAMILIES,
    MethodInfo as MethodInfo,
    cost_cell as cost_cell,
    cost_note as cost_note,
    format_value as format_value,
    hyper_parameter as hyper_parameter,
    method_details as method_details,
    method_summary as method_summary,
)
from .config import (
    MethodConfig as MethodConfig,
    StyleConfig as StyleConfig,
    Value as Value,
    choice as choice,
    expected_and_got as expected_and_got,
    fixed as fixed,
    hp as hp,
    int_uniform as int_uniform,
    key_mistakes as key_mistakes,
    log_uniform as log_uniform,
    power as power,
    uniform as uniform,
    unused as unused,
)
from .logistic import (
    LinearHead as LinearHead,
    cell_weights as cell_weights,
    choose_strength as choose_strength,
    fit_logistic as fit_logistic,
    thin_cells as thin_cells,
)
from .registry import (
    all_methods as all_methods,
    create_method as create_method,
    get_method as get_method,
    list_methods as list_methods,
    method_infos as method_infos,
    methods_without_presets as methods_without_presets,
    register as register,
)

__all__ = [
    "Batch",
    "Losses",
    "Method",
    "MethodConfig",
    "MethodInfo",
    "Problem",
    "StyleConfig",
    "all_methods",
    "choice",
    "create_method",
    "fixed",
    "get_method",
    "hp",
    "int_uniform",
    "list_methods",
    "log_uniform",
    "method_infos",
    "power",
    "register",
    "uniform",
    "unused",
]

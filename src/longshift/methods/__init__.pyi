from .base import Losses as Losses, Method as Method, Problem as Problem
from .batch import Batch as Batch
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

# Used by the other packages of longshift; not public.
from .info import (
    FAMILIES as FAMILIES,
    MethodInfo as MethodInfo,
    check_names as check_names,
    cost_cell as cost_cell,
    cost_note as cost_note,
    method_infos as method_infos,
    method_summary as method_summary,
)
from .method_catalog import (
    format_value as format_value,
    hyper_parameter_rows as hyper_parameter_rows,
    method_details as method_details,
)
from .method_creation import create_method as create_method, list_methods as list_methods
from .registry import (
    all_methods as all_methods,
    get_method as get_method,
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

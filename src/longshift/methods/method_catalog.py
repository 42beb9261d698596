"""What `longshift methods NAME` and the methods page show of a method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from longshift.methods.base import Method
from longshift.methods.config import HyperParameter, Space, Value
from longshift.methods.info import method_summary
from longshift.methods.registry import get_method


def method_details(cls: type[Method]) -> dict[str, Any]:
    """Return the summary, docstring, hyper-parameters and repairs of a method."""
    used = {name: info for name, info in cls.Config.hyper_parameters().items() if not info.instead}
    base = get_method(cls.info.preset_of).Config.hyper_parameters() if cls.info.preset_of else used
    return method_summary(cls.info) | {
        "description": _description(cls),
        "formula": cls.info.formula,
        "use": cls.info.use,
        "hyper_parameters": {name: hyper_parameter(info) for name, info in used.items()},
        "differs": [
            f"{name}={format_value(info.default)}" for name, info in used.items() if info.default != base[name].default
        ],
        "not_used": cls.Config.not_used(),
        "repairs": list(cls.repairs),
    }


def hyper_parameter(info: HyperParameter) -> dict[str, Any]:
    """Return default, range, limits and meaning as plain values."""
    return {
        "default": info.default,
        "range": describe_space(info.space),
        "limits": limits(info),
        "meaning": info.meaning,
        "variants": {key: {"default": v, "range": describe_space(space)} for key, (v, space) in info.variants.items()},
    }


def describe_space(space: Space) -> str:
    """Describe the search space; "not searched" if every draw keeps the default."""
    return "not searched" if space.kind == "fixed" else space.describe()


def limits(info: HyperParameter) -> str:
    """Describe the accepted values in one phrase."""
    if isinstance(info.default, bool):
        return "true or false"
    if info.options:
        return "one of " + ", ".join(map(str, info.options))
    ends = ((">=", info.at_least), ("<=", info.at_most))
    return ", ".join(f"{sign} {end:g}" for sign, end in ends if end is not None)


def format_value(value: Value) -> str:
    """Format a value as a user would type it."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def variants(info: HyperParameter) -> str:
    """Describe other defaults and ranges, by context."""
    return "; ".join(f"{key}: {format_value(v)}, {describe_space(space)}" for key, (v, space) in info.variants.items())


def hyper_parameter_rows(infos: Mapping[str, HyperParameter]) -> dict[str, tuple[str, ...]]:
    """Return default, search space, limits, meaning and other contexts of each hyper-parameter, as text."""
    return {
        name: (format_value(info.default), describe_space(info.space), limits(info), info.meaning, variants(info))
        for name, info in infos.items()
    }


def _description(cls: type[Method]) -> str:
    return " ".join((cls.__doc__ or "").split())

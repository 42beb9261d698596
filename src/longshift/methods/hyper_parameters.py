"""The declaration of a hyper-parameter: default, search space, meaning and limits."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from longshift.methods.search_spaces import Space, Value


@dataclass(frozen=True)
class HyperParameter:
    """The declaration of one hyper-parameter."""

    default: Value
    space: Space
    meaning: str
    at_least: float | None = None
    at_most: float | None = None
    options: tuple[Value, ...] = ()
    # Another default and space under a name: "small" (images of 64 pixels or less) or a benchmark ("PACS").
    variants: Mapping[str, tuple[Value, Space]] = field(default_factory=dict)
    instead: str = ""  # for a common hyper-parameter that this method does not use: those it uses instead
    steps: bool = False  # whether it counts training steps, relative to the length of the protocol's runs

    def resolve(self, contexts: tuple[str, ...]) -> tuple[Value, Space]:
        """Return default and space of the first context that has its own, else the general ones."""
        for context in contexts:
            if context in self.variants:
                return self.variants[context]
        return self.default, self.space

    def mistakes(self, name: str, value: object) -> list[str]:
        """Return the mistakes of a value; empty if it is valid."""
        expected: type = type(self.default)
        if expected is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if type(value) is not expected:
            return [f"{name}: expected {expected.__name__}, got {value!r}"]
        if self.options and value not in self.options:
            return [f"{name}: expected one of {', '.join(map(str, self.options))}, got {value!r}"]
        if isinstance(value, (int, float)):
            if not math.isfinite(value):
                return [f"{name}: expected a finite number, got {value}"]
            if self.at_least is not None and value < self.at_least:
                return [f"{name}: expected at least {self.at_least:g}, got {value}"]
            if self.at_most is not None and value > self.at_most:
                return [f"{name}: expected at most {self.at_most:g}, got {value}"]
        return []


T = TypeVar("T", bound=Value)


def hp(
    default: T,
    space: Space,
    meaning: str,
    *,
    at_least: float | None = None,
    at_most: float | None = None,
    options: tuple[Value, ...] = (),
    variants: Mapping[str, tuple[Value, Space]] | None = None,
    steps: bool = False,
) -> T:
    """Declare a hyper-parameter as a field of a `MethodConfig`.

    Args:
        default: Default value; its type is the type of the hyper-parameter.
        space: Search space, for example `log_uniform(1e-3, 1)` or `fixed()`.
        meaning: One phrase for tables.
        at_least: Smallest accepted value.
        at_most: Largest accepted value.
        options: Accepted values, if they are a fixed list.
        variants: Other defaults and spaces by context ("small" or a benchmark).
        steps: Whether the value counts training steps and scales with `schedules = "scaled"`.

    Returns:
        The field.

    Example:
        >>> from dataclasses import dataclass
        >>> from longshift.methods import MethodConfig, log_uniform
        >>> @dataclass(frozen=True)
        ... class Config(MethodConfig):
        ...     tilt: float = hp(1.0, log_uniform(0.1, 10), "weight of the worst domain", at_least=1e-3)
        >>> Config.make({"tilt": 3.0}).tilt
        3.0
    """
    info = HyperParameter(default, space, meaning, at_least, at_most, options, variants or {}, steps=steps)
    result: T = dataclasses.field(default=default, metadata={"hp": info})
    return result

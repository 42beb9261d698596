"""Search spaces: the distributions from which hyper-parameters are drawn at random."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

Value: TypeAlias = float | int | str | bool
Kind = Literal["uniform", "power", "choice", "fixed"]


@dataclass(frozen=True)
class Space:
    """The distribution of random draws of a hyper-parameter."""

    kind: Kind
    low: float = 0.0  # of the value, or of the exponent for "power"
    high: float = 0.0
    base: float = 10.0
    integer: bool = False
    choices: tuple[Value, ...] = ()

    def sample(self, rng: np.random.Generator) -> Value | None:
        """Draw a value; None means "keep the default"."""
        if self.kind == "fixed":
            return None
        if self.kind == "choice":
            return self.choices[int(rng.integers(len(self.choices)))]
        value = float(rng.uniform(self.low, self.high))
        if self.kind == "power":
            value = self.base**value
        return int(value) if self.integer else value

    def describe(self) -> str:
        """Describe the space in a short phrase, for tables."""
        if self.kind == "fixed":
            return "fixed"
        if self.kind == "choice":
            return "one of " + ", ".join(str(c) for c in self.choices)
        inner = f"U({self.low:g}, {self.high:g})"
        text = f"{self.base:g}^{inner}" if self.kind == "power" else inner
        return f"int({text})" if self.integer else text


def uniform(low: float, high: float) -> Space:
    """Search space: uniform between two values.

    Args:
        low: Smallest value.
        high: Largest value.

    Returns:
        The search space.

    Example:
        >>> uniform(0.1, 0.3).describe()
        'U(0.1, 0.3)'
    """
    return Space("uniform", low, high)


def int_uniform(low: float, high: float) -> Space:
    """Search space: uniform between two values, truncated to an integer.

    Args:
        low: Smallest value.
        high: Largest value.

    Returns:
        The search space.

    Example:
        >>> int_uniform(100, 150).describe()
        'int(U(100, 150))'
    """
    return Space("uniform", low, high, integer=True)


def log_uniform(low: float, high: float) -> Space:
    """Search space: log-uniform between two values.

    Args:
        low: Smallest value.
        high: Largest value.

    Returns:
        The search space.

    Example:
        >>> log_uniform(1e-3, 1).describe()
        '10^U(-3, 0)'
    """
    return Space("power", math.log10(low), math.log10(high))


def power(base: float, low: float, high: float, *, integer: bool = False) -> Space:
    """Search space: `base` to the power of a uniform exponent.

    Args:
        base: The base.
        low: Smallest exponent.
        high: Largest exponent.
        integer: Whether to truncate the value to an integer.

    Returns:
        The search space.

    Example:
        >>> power(2, 3, 5.5, integer=True).describe()
        'int(2^U(3, 5.5))'
    """
    return Space("power", low, high, base, integer)


def choice(*values: Value) -> Space:
    """Search space: one of the values, with equal probability.

    Args:
        *values: The values.

    Returns:
        The search space.

    Example:
        >>> choice(1, 2, 4).describe()
        'one of 1, 2, 4'
    """
    return Space("choice", choices=values)


def fixed() -> Space:
    """Search space: every draw keeps the default.

    Returns:
        The search space.

    Example:
        >>> fixed().kind
        'fixed'
    """
    return Space("fixed")

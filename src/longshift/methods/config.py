"""Hyper-parameters: their declaration (`hp`), search spaces, and the configs that all methods share.

A config is a frozen pydantic model whose fields are declared with `hp`. Importing this module does not import PyTorch.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from longshift.errors import ConfigError, unknown_name

if TYPE_CHECKING:
    import numpy as np

Value: TypeAlias = float | int | str | bool
T = TypeVar("T", bound=Value)
C = TypeVar("C", bound="SearchableConfig")


@dataclass(frozen=True)
class Space:
    """The distribution of random draws of a hyper-parameter."""

    kind: Literal["uniform", "power", "choice", "fixed"]
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
            return "not searched"
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
        return next((self.variants[name] for name in contexts if name in self.variants), (self.default, self.space))

    def as_field(self) -> Any:
        """Return the field of a pydantic model."""
        limits: dict[str, Any] = {"ge": self.at_least, "le": self.at_most}
        if type(self.default) is float:
            limits["allow_inf_nan"] = False
        extra: dict[str, Any] = {"hp": self}
        return Field(self.default, description=self.meaning, json_schema_extra=extra, **limits)


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
        >>> from longshift.methods import MethodConfig, log_uniform
        >>> class Config(MethodConfig):
        ...     tilt: float = hp(1.0, log_uniform(0.1, 10), "weight of the worst domain", at_least=1e-3)
        >>> Config.make({"tilt": 3.0}).tilt
        3.0
    """
    info = HyperParameter(default, space, meaning, at_least, at_most, options, variants or {}, steps=steps)
    result: T = info.as_field()
    return result


def unused(name: str, instead: str) -> Any:
    """Declare that a method does not use a hyper-parameter that all methods have.

    It is still drawn, so that the draws of the others do not change, but it does not distinguish runs.

    Args:
        name: Its name, for example "lr".
        instead: What the method uses instead; setting `name` is an error that says so.

    Returns:
        The field of the method's config.

    Example:
        >>> class Config(MethodConfig):
        ...     lr: float = unused("lr", "lr_g and lr_d")
    """
    return replace(MethodConfig.hyper_parameters()[name], instead=instead).as_field()


def with_default(
    config: type[SearchableConfig],
    name: str,
    default: T,
    *,
    space: Space | None = None,
    variants: Mapping[str, tuple[Value, Space]] | None = None,
) -> T:
    """Declare a hyper-parameter of another config with another default, for presets; without a space: not searched."""
    known = config.hyper_parameters()[name]
    result: T = replace(known, default=default, space=space or fixed(), variants=variants or {}).as_field()
    return result


class SearchableConfig(BaseModel):
    """The base of configs whose fields have search spaces."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    @field_validator("*")
    @classmethod
    def _one_of_the_options(cls, value: Value, info: ValidationInfo) -> Value:
        options = cls.hyper_parameters()[str(info.field_name)].options
        if options and value not in options:
            text = f"expected one of {', '.join(map(str, options))}, got {value!r}"
            raise PydanticCustomError("longshift", "{text}", {"text": text})
        return value

    @classmethod
    @functools.cache
    def hyper_parameters(cls) -> dict[str, HyperParameter]:
        """Return all hyper-parameters by name, the common ones first."""
        extras = {name: known.json_schema_extra for name, known in cls.model_fields.items()}
        return {name: extra["hp"] for name, extra in extras.items() if isinstance(extra, dict)}  # type: ignore[misc]

    @classmethod
    def not_used(cls) -> dict[str, str]:
        """Return the common hyper-parameters without effect, with those that the method uses instead."""
        return {name: info.instead for name, info in cls.hyper_parameters().items() if info.instead}

    @classmethod
    def make(
        cls: type[C], values: Mapping[str, Any] | None = None, contexts: tuple[str, ...] = (), base: C | None = None
    ) -> C:
        """Return `base`, or the defaults of the contexts, overridden by `values`; report all mistakes together."""
        unused, values = cls.not_used(), values or {}
        mistakes = [f"{name}: has no effect here; use {unused[name]}" for name in values if name in unused]
        start = cls._variants(contexts) if base is None else base.model_dump(include=base.model_fields_set)
        try:
            made = cls.model_validate({**start, **{name: v for name, v in values.items() if name not in unused}})
        except ValidationError as error:
            known = cls.hyper_parameters().keys() - unused
            mistakes += [text for _, text in key_mistakes(error, known, "hyper-parameter")]
        if mistakes:
            raise ConfigError(mistakes, cls.__name__)
        return made

    @classmethod
    def sample(
        cls: type[C],
        rng: np.random.Generator,
        contexts: tuple[str, ...] = (),
        common: Callable[[str], np.random.Generator] | None = None,
    ) -> C:
        """Draw at random: one number per hyper-parameter, in the order of declaration.

        `common` gives the generators of those that all methods have, by name; by default they are drawn from `rng`.
        """
        shared = MethodConfig.hyper_parameters() if common else {}
        drawn = {
            name: info.resolve(contexts)[1].sample(common(name) if common and name in shared else rng)
            for name, info in cls.hyper_parameters().items()
        }
        return cls(**(cls._variants(contexts) | {name: value for name, value in drawn.items() if value is not None}))

    @classmethod
    def _variants(cls, contexts: tuple[str, ...]) -> dict[str, Any]:
        """The defaults that differ from the general ones in these contexts."""
        found = {name: info.resolve(contexts)[0] for name, info in cls.hyper_parameters().items()}
        return {name: value for name, value in found.items() if value != cls.hyper_parameters()[name].default}

    def to_dict(self) -> dict[str, Value]:
        """Return the used values in the order of declaration; `make` gives the same config for them."""
        return self.model_dump(exclude=set(self.not_used()))

    def differences(self, base: type[SearchableConfig]) -> dict[str, Value]:
        """Return the used values that differ from the defaults of `base`, which tell configs apart."""
        known = base.hyper_parameters()
        return {name: value for name, value in self.to_dict().items() if value != known[name].default}


class MethodConfig(SearchableConfig):
    """The hyper-parameters that all methods have; the config of a method adds its own fields.

    Attributes:
        lr: Learning rate of Adam.
        weight_decay: L2 penalty added to the gradient.
        batch_size: Samples per source domain and step.
        dropout: Dropout probability before the classifier.

    Example:
        >>> MethodConfig.make({"lr": 1e-3}).lr
        0.001
    """

    lr: float = hp(
        5e-5,
        power(10, -5, -3.5),
        "learning rate of Adam",
        at_least=0.0,
        variants={"small": (1e-3, power(10, -4.5, -2.5))},
    )
    weight_decay: float = hp(
        0.0, power(10, -6, -2), "L2 penalty added to the gradient", at_least=0.0, variants={"small": (0.0, fixed())}
    )
    # The published space for small images, 2^U(3, 9), asks for 1,500 images a step; capped at 128 per domain.
    batch_size: int = hp(
        32,
        power(2, 3, 5.5, integer=True),
        "samples per source domain and step",
        at_least=2,
        variants={"small": (64, power(2, 3, 7, integer=True)), "DomainNet": (32, power(2, 3, 5, integer=True))},
    )
    dropout: float = hp(
        0.0,
        choice(0.0, 0.1, 0.5),
        "dropout probability before the classifier",
        at_least=0.0,
        at_most=0.95,
    )

    def shortened(self: C, factor: float) -> C:
        """Scale all schedules (values that count steps); those that are not 0 stay at least 1."""
        scaled = {
            name: max(round(getattr(self, name) * factor), min(getattr(self, name), 1))
            for name, info in self.hyper_parameters().items()
            if info.steps
        }
        return self.model_copy(update=scaled)

    def beyond(self, steps: int) -> dict[str, int]:
        """Return the schedules that a run of this many steps never reaches."""
        counted = {name: int(getattr(self, name)) for name, info in self.hyper_parameters().items() if info.steps}
        return {name: value for name, value in counted.items() if value >= steps}


class StyleConfig(SearchableConfig):
    """Style mixing of training images: the table [style] of a run. A method may have other defaults (`Method.Style`).

    Attributes:
        mix: What is mixed: "none", "amplitude", "convolution", "both" or "statistics".
        amount: Largest mixing coefficient, which is drawn from U(0, amount).
        share: Share of the images of a step whose style is mixed.
        partner: Partner from another domain: "any", or of the same "class" if there is one.
        views: 1: styled images replace plain ones; 2: a batch has both.

    Example:
        >>> StyleConfig.make({"mix": "both", "share": 0.5}).has_kernels
        True
    """

    # The published methods leave it off.
    mix: str = hp(
        "none",
        fixed(),
        "mix styles: Fourier amplitudes, random convolutions, one of both, channel statistics",
        options=("none", "amplitude", "convolution", "both", "statistics"),
    )
    amount: float = hp(
        1.0, uniform(0.3, 1.0), "largest mixing coefficient of styles, drawn from U(0, this)", at_least=0.0, at_most=1.0
    )
    share: float = hp(
        1.0, uniform(0.3, 1.0), "share of the images of a step whose style is mixed", at_least=0.0, at_most=1.0
    )
    partner: str = hp(
        "any",
        choice("any", "class"),
        "partner from another domain: any, or of the same class where there is one",
        options=("any", "class"),
    )
    views: int = hp(
        1, fixed(), "1: styled images replace plain ones; 2: both, the batch doubles", at_least=1, at_most=2
    )

    @property
    def has_partners(self) -> bool:
        """Whether images take the style of others."""
        return self.mix not in ("none", "convolution")

    @property
    def has_kernels(self) -> bool:
        """Whether images are convolved."""
        return self.mix in ("convolution", "both")


def key_mistakes(error: ValidationError, known: Iterable[str], kind: str = "key") -> list[tuple[str, str]]:
    """Return what pydantic refuses, as (key, "key: expected X, got Y")."""
    found: dict[str, tuple[str, str]] = {}
    for problem in error.errors():
        # What follows a key in the path are the branches of a union, each with an error of its own: one is enough.
        name = ".".join(str(part) for part in problem["loc"][:2])
        if problem["type"] == "extra_forbidden":
            text = unknown_name(kind, name, known)
        elif problem["type"] == "missing":
            hint = " (the domain to hold out; `longshift data inspect DATA` lists them)" if name == "target" else ""
            text = f"{name}: is required{hint}"
        else:
            text = f"{name}: {expected_and_got(problem)}" if name else expected_and_got(problem)
        found.setdefault(name, (str(problem["loc"][0]) if problem["loc"] else "", text))
    return list(found.values())


def expected_and_got(problem: Mapping[str, Any]) -> str:
    """Return "expected X, got Y" for one of the errors of a `ValidationError`."""
    limits = {
        "greater_than_equal": "at least {ge:g}",
        "less_than_equal": "at most {le:g}",
        "greater_than": "more than {gt:g}",
        "less_than": "less than {lt:g}",
    }
    if problem["type"] == "longshift":  # one of our own messages, which names the value
        return str(problem["msg"])
    if problem["type"] == "value_error":
        inner = problem["ctx"]["error"]  # of another model that was made meanwhile, or our own message
        return expected_and_got(inner.errors()[0]) if isinstance(inner, ValidationError) else str(inner)
    if problem["type"] in limits:
        text = "expected " + limits[problem["type"]].format(**problem["ctx"])
    else:
        text = problem["msg"].replace("Input should be ", "expected ")
        text = re.sub(r"a (valid )?dictionary.*", "a table", text)
    return f"{text[:1].lower()}{text[1:]}, got {problem['input']!r}"

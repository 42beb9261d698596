"""The config of a method: the hyper-parameters that all methods have; each method adds its own in its file."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from longshift.errors import ConfigError, unknown_name
from longshift.methods.hyper_parameters import HyperParameter, hp
from longshift.methods.search_spaces import Space, Value, choice, fixed, power, uniform

T = TypeVar("T", bound=Value)
C = TypeVar("C", bound="MethodConfig")

# The options of the style stage. They are listed, because a method of a plugin may have a `style_weight` of its own.
STYLE_OPTIONS = ("style_amount", "style_share", "style_partner", "style_views", "style_domain")
# Those that a style does not use: a random convolution has no partner.
IDLE_OPTIONS = {"none": STYLE_OPTIONS, "convolution": ("style_partner", "style_domain")}


@dataclass(frozen=True)
class MethodConfig:
    """The hyper-parameters that all methods have; the config of a method adds its own fields.

    Attributes:
        lr: Learning rate of Adam.
        weight_decay: L2 penalty added to the gradient.
        batch_size: Samples per source domain and step.
        dropout: Dropout probability before the classifier.
        style: Mix image styles: "none", "amplitude", "convolution", "both" or "statistics".
        style_amount: Largest mixing coefficient of styles, which are drawn from U(0, style_amount).
        style_share: Share of the images of a step whose style is mixed.
        style_partner: Partner from another domain: "any", or of the same "class" if there is one.
        style_views: 1: styled images replace plain ones; 2: a batch has both.

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
        variants={"small": (64, power(2, 3, 7, integer=True))},
    )
    dropout: float = hp(
        0.0,
        choice(0.0, 0.1, 0.5),
        "dropout probability before the classifier",
        at_least=0.0,
        at_most=0.95,
    )

    # Style mixing is a stage of the input pipeline (training/style_stage.py). The published methods leave it off.
    style: str = hp(
        "none",
        fixed(),
        "mix image styles: Fourier amplitude of another domain, random convolution, one of both, channel statistics",
        options=("none", "amplitude", "convolution", "both", "statistics"),
    )
    style_amount: float = hp(
        1.0, uniform(0.3, 1.0), "largest mixing coefficient of styles, drawn from U(0, this)", at_least=0.0, at_most=1.0
    )
    style_share: float = hp(
        1.0, uniform(0.3, 1.0), "share of the images of a step whose style is mixed", at_least=0.0, at_most=1.0
    )
    style_partner: str = hp(
        "any",
        choice("any", "class"),
        "partner from another domain: any, or of the same class where there is one",
        options=("any", "class"),
    )
    style_views: int = hp(
        1, fixed(), "1: styled images replace plain ones; 2: both, the batch doubles", at_least=1, at_most=2
    )

    @classmethod
    def hyper_parameters(cls) -> dict[str, HyperParameter]:
        """Return all hyper-parameters by name, the common ones first."""
        return {f.name: f.metadata["hp"] for f in dataclasses.fields(cls) if "hp" in f.metadata}

    @classmethod
    def not_used(cls) -> dict[str, str]:
        """Return the common hyper-parameters without effect, with those that the method uses instead."""
        return {name: info.instead for name, info in cls.hyper_parameters().items() if info.instead}

    @classmethod
    def make(
        cls: type[C], values: Mapping[str, Any] | None = None, contexts: tuple[str, ...] = (), base: C | None = None
    ) -> C:
        """Return `base`, or the defaults of the contexts, overridden by `values`; report all mistakes together."""
        known = cls.hyper_parameters()
        mistakes: list[str] = []
        chosen: dict[str, Any] = {name: info.resolve(contexts)[0] for name, info in known.items()}
        if base is not None:
            chosen = base.fields()
        given: dict[str, Any] = {}
        for name, value in (values or {}).items():
            if name not in known:
                mistakes.append(unknown_name("hyper-parameter", name, known.keys() - cls.not_used()))
                continue
            found = known[name].mistakes(name, value)
            if known[name].instead:
                found = [f"{name}: has no effect here; use {known[name].instead}"]
            mistakes.extend(found)
            if not found:
                given[name] = float(value) if type(known[name].default) is float else value
        if mistakes:
            raise ConfigError(mistakes, cls.__name__)
        return cls(**cls._without_idle_style(cls.settled({**chosen, **given}, given), contexts))

    @classmethod
    def settled(cls, chosen: dict[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
        """Complete the values, knowing which were given; for methods in which one value implies others."""
        return chosen

    @classmethod
    def sample(cls: type[C], rng: np.random.Generator, contexts: tuple[str, ...] = ()) -> C:
        """Draw at random: one number per hyper-parameter, in the order of declaration.

        Those of the style stage have a generator of their own, so that the draws of all others do not depend on it.
        They are drawn while the style is "none", too, because a given style may follow: `make` with the draw as `base`
        completes it, and resets them if it does not.
        """
        chosen: dict[str, Any] = {}
        (style_rng,) = rng.spawn(1)
        for name, info in cls.hyper_parameters().items():
            default, space = info.resolve(contexts)
            drawn = space.sample(style_rng if of_style(name) else rng)
            chosen[name] = default if drawn is None else drawn
        return cls(**chosen)

    @classmethod
    def _without_idle_style(cls, chosen: dict[str, Any], contexts: tuple[str, ...]) -> dict[str, Any]:
        """The values with the options that the style does not use at their defaults: they tell no configs apart."""
        idle, known = IDLE_OPTIONS.get(chosen["style"], ()), cls.hyper_parameters()
        return {**chosen, **{name: known[name].resolve(contexts)[0] for name in idle if name in known}}

    def idle_options(self) -> tuple[str, ...]:
        """Return the options of the style stage that the style does not use."""
        return IDLE_OPTIONS.get(self.style, ())

    def shortened(self: C, factor: float) -> C:
        """Scale all schedules (values that count steps); those that are not 0 stay at least 1."""
        scaled: dict[str, Any] = {
            name: max(round(getattr(self, name) * factor), min(getattr(self, name), 1))
            for name, info in self.hyper_parameters().items()
            if info.steps
        }
        return dataclasses.replace(self, **scaled)

    def beyond(self, steps: int) -> dict[str, int]:
        """Return the schedules that a run of this many steps never reaches."""
        counted = {name: int(getattr(self, name)) for name, info in self.hyper_parameters().items() if info.steps}
        return {name: value for name, value in counted.items() if value >= steps}

    def fields(self) -> dict[str, Value]:
        """Return every field, in the order of declaration."""
        return dataclasses.asdict(self)

    def identity(self) -> dict[str, Value]:
        """Every field that tells runs apart: all but those of a style stage that is off."""
        return {name: value for name, value in self.fields().items() if self.style != "none" or not of_style(name)}

    def to_dict(self) -> dict[str, Value]:
        """Return the used values in the order of declaration; `make` gives the same config for them."""
        kept = set(self.identity()) - set(self.not_used())
        if self.hyper_parameters()["style"].default != "none":
            kept.add("style")
        return {name: value for name, value in self.fields().items() if name in kept}


def of_style(name: str) -> bool:
    """Whether a hyper-parameter belongs to the style stage."""
    return name == "style" or name in STYLE_OPTIONS


def unused(name: str, instead: str) -> Any:
    """Declare that a method does not use a hyper-parameter that all methods have.

    It is still drawn, so that the draws of the others do not change, but it does not distinguish configs.

    Args:
        name: Its name, for example "lr".
        instead: What the method uses instead; setting `name` is an error that says so.

    Returns:
        The field of the method's config.

    Example:
        >>> from dataclasses import dataclass
        >>> @dataclass(frozen=True)
        ... class Config(MethodConfig):
        ...     lr: float = unused("lr", "lr_g and lr_d")
    """
    info = dataclasses.replace(MethodConfig.hyper_parameters()[name], instead=instead)
    return dataclasses.field(default=info.default, metadata={"hp": info}, compare=False)


def with_default(
    config: type[MethodConfig],
    name: str,
    default: T,
    *,
    space: Space | None = None,
    variants: Mapping[str, tuple[Value, Space]] | None = None,
) -> T:
    """Declare a hyper-parameter of another config with another default, for presets; without a space: not searched."""
    known = config.hyper_parameters()[name]
    info = dataclasses.replace(known, default=default, space=space or fixed(), variants=variants or {})
    result: T = dataclasses.field(default=default, metadata={"hp": info})
    return result

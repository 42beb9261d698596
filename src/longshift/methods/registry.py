"""Methods by name. A file in this package registers its method; so does a plugin."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable
from typing import Literal, TypeVar

from longshift.errors import LongshiftError, UsageError
from longshift.methods.base import Method
from longshift.methods.info import MethodInfo, in_order
from longshift.registry import Registry

Family = Literal["dg", "imbalance", "idg"]
M = TypeVar("M", bound=type[Method])

METHODS = Registry[type[Method]]("method", "longshift methods")


def register(
    name: str,
    *,
    title: str,
    family: Family,
    paper: str,
    idea: str,
    row: int = 0,
    preset_of: str = "",
    formula: str = "",
    use: str = "",
    card: str = "",
) -> Callable[[M], M]:
    """Decorate a subclass of `Method`: `longshift train --method NAME` then trains it.

    Args:
        name: What users type, in lower case.
        title: What tables and figures show.
        family: "dg" (domain generalization), "imbalance" or "idg" (both).
        paper: Reference, such as an arXiv number.
        idea: One line about how it works.
        row: Its row in the paper's tables; 0, the default, puts it after those of its family.
        preset_of: The method that this one is with other defaults, if it is a preset.
        formula: What it minimizes, in LaTeX.
        use: When to use it, in one or two sentences.
        card: What it does, in plain words for the model card of `fit`; by default the idea.

    Returns:
        The decorator.

    Raises:
        LongshiftError: If another method has this name, or a preset has more of its own than other defaults.

    Example:
        >>> @register("tilted", title="Tilted", family="dg", paper="arXiv:2007.01162", idea="soft maximum of risks")
        ... class Tilted(Method):
        ...     ...
    """

    def add(cls: M) -> M:
        if not (isinstance(cls, type) and issubclass(cls, Method)):
            raise LongshiftError(f"Expected a subclass of longshift.methods.Method, got {cls!r}.")
        if not cls.__module__.startswith("longshift.methods."):
            _load_package()  # first, so that the built-in names are taken
        if preset_of:
            _check_preset(name, cls, preset_of)
        cls.info = MethodInfo(name, title, family, paper, idea, row, preset_of, formula, use, card)
        METHODS.add(name, cls)
        return cls

    return add


def _check_preset(name: str, cls: type[Method], base: str) -> None:
    """A preset shares its runs with its method, so it may differ only in its defaults."""
    known = METHODS.peek(base)
    if known is None or not issubclass(cls, known):
        raise LongshiftError(f"Expected {name!r}, a preset of {base!r}, to be a subclass of it.")
    own = [word for word in vars(cls) if not word.startswith("_") and word not in ("Config", "Style", "info")]
    if own or set(cls.Config.hyper_parameters()) != set(known.Config.hyper_parameters()):
        raise LongshiftError(f"Expected {name!r}, a preset of {base!r}, to differ only in defaults.")


@functools.cache
def _load_package() -> None:
    """Once per process: listing the folder each time would take most of the time of naming a sweep's jobs."""
    package = importlib.import_module("longshift.methods")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"longshift.methods.{module.name}")


def all_methods() -> dict[str, type[Method]]:
    """Return all registered methods.

    Returns:
        A mapping from name to class, sorted by family (dg, imbalance, idg) and then by name.

    Example:
        >>> list(all_methods())[:2]
        ['coral', 'dann']
    """
    _load_package()
    known = {cls.info.name: cls for cls in METHODS.values()}
    return {info.name: known[info.name] for info in in_order(cls.info for cls in known.values())}


def methods_without_presets() -> dict[str, type[Method]]:
    """The methods that "all" stands for in a comparison; a preset takes part only when it is named."""
    return {name: cls for name, cls in all_methods().items() if not cls.info.preset_of}


def get_method(name: str) -> type[Method]:
    """Return the class of a method.

    Args:
        name: Its name or title, in any case.

    Returns:
        The class.

    Raises:
        UsageError: If there is no such method; the message names similar ones.

    Example:
        >>> get_method("NDCL").info.family
        'idg'
    """
    _load_package()
    if (exact := METHODS.peek(name)) is not None:  # the usual case: a sweep asks several times per job
        return exact
    known = all_methods()
    spellings = {cls.info.title.casefold(): cls for cls in known.values()}
    spellings |= {key.casefold(): cls for key, cls in known.items()}  # a name wins over another method's title
    if name.casefold() in spellings:
        return spellings[name.casefold()]
    raise UsageError(METHODS.unknown(name))

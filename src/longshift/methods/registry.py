"""Methods by name. A file in this package registers itself; so does a plugin (entry point or file)."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable
from typing import Literal, TypeVar

from longshift.errors import LongshiftError, UsageError, unknown_name
from longshift.methods import plugins
from longshift.methods.base import Method
from longshift.methods.info import MethodInfo, in_order

Family = Literal["dg", "imbalance", "idg"]
M = TypeVar("M", bound=type[Method])

_METHODS: dict[str, type[Method]] = {}


def register(name: str, *, title: str, family: Family, paper: str, idea: str, preset_of: str = "") -> Callable[[M], M]:
    """Class decorator: make a method known under `name`. A preset is another method with other default values."""

    def add(cls: M) -> M:
        known = _METHODS.get(name)
        if known is not None and (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
            raise LongshiftError(f"two methods are called {name!r}: {known.__module__} and {cls.__module__}")
        if preset_of:
            _check_preset(name, cls, preset_of)
        cls.info = MethodInfo(name, title, family, paper, idea, preset_of)
        _METHODS[name] = cls
        return cls

    return add


def _check_preset(name: str, cls: type[Method], base: str) -> None:
    """A preset shares its runs with its method, so it may have other defaults and nothing else of its own."""
    known = _METHODS.get(base)
    if known is None or not issubclass(cls, known):
        raise LongshiftError(f"{name!r} is registered as a preset of {base!r}, but is not a subclass of it")
    own = [word for word in vars(cls) if not word.startswith("_") and word not in ("Config", "info")]
    if own or set(cls.Config.hyper_parameters()) != set(known.Config.hyper_parameters()):
        raise LongshiftError(f"{name!r}, a preset of {base!r}, has more of its own than other defaults")


def load_all() -> None:
    """Import every module of this package and every installed plugin, so that all methods are registered."""
    _load_package()
    plugins.load_entry_points()


@functools.cache
def _load_package() -> None:
    """Once per process: listing the folder each time would take most of the time of naming a sweep's jobs."""
    package = importlib.import_module("longshift.methods")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"longshift.methods.{module.name}")


def all_methods() -> dict[str, type[Method]]:
    """All registered methods by name, sorted by family (dg, imbalance, idg) and then by name."""
    load_all()
    return {info.name: _METHODS[info.name] for info in in_order(cls.info for cls in _METHODS.values())}


def methods_without_presets() -> dict[str, type[Method]]:
    """The methods that "all" stands for in a comparison; a preset takes part only when it is named."""
    return {name: cls for name, cls in all_methods().items() if not cls.info.preset_of}


def get_method(name: str) -> type[Method]:
    """The method of that name or title, in any case of letters, or of a file of your own: `path/to/file.py:Class`."""
    known = all_methods()  # first, so that a file that takes a name of theirs is the one to be told
    if plugins.is_file_spec(name):
        return plugins.from_file(name)
    spelt = {cls.info.title.casefold(): cls for cls in known.values()}
    spelt |= {key.casefold(): cls for key, cls in known.items()}  # a name wins over another's title
    if name.casefold() in spelt:
        return spelt[name.casefold()]
    raise UsageError(unknown_name("method", name, known) + "; `longshift methods` lists them all")

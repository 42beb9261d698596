"""Methods defined outside the package: by entry point (group "longshift.methods") or as `path/to/file.py:Class`."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import sys
import warnings
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType

from longshift.errors import LongshiftError, UsageError, unknown_name
from longshift.methods.base import Method
from longshift.methods.info import GROUP

_done: set[tuple[str, str]] = set()  # entry points already looked at: a broken one is reported once


def is_file_spec(name: str) -> bool:
    """Whether a name has the form `path/to/file.py:Class`."""
    path, colon, _ = name.rpartition(":")
    return bool(colon) and path.endswith(".py")


def from_file(spec: str) -> type[Method]:
    """The method class `path/to/file.py:Class`; the file is run once per process."""
    text, _, name = spec.rpartition(":")
    path = Path(text)
    if not path.is_file():
        raise UsageError(f"no file {path} (from --method {spec}); expected path/to/file.py:Class")
    module = _module(path)
    found = getattr(module, name, None)
    if found is None:
        classes = [key for key, value in vars(module).items() if isinstance(value, type) and _is_method(value)]
        raise UsageError(f"{path}: {unknown_name('class', name, classes)}" if classes else f"{path} defines no method")
    return check(found, f"{path}:{name}")


def check(found: object, where: str) -> type[Method]:
    """`found` if it is a registered method class; else an error that says what it lacks."""
    if not isinstance(found, type) or not issubclass(found, Method):
        kind = f"the class {found.__name__}" if isinstance(found, type) else f"a {type(found).__name__}"
        raise UsageError(f"{where} is {kind}, not a method; expected a subclass of longshift.methods.base.Method")
    if "info" not in vars(found):
        raise UsageError(f'{where} has no name; decorate it with @register("name", title=..., family=..., ...)')
    return found


def load_entry_points() -> None:
    """Import every installed plugin; one that fails is named in a warning and left out, the others work on."""
    for point in _points(tuple(sys.path)):
        if (point.name, point.value) in _done:
            continue
        _done.add((point.name, point.value))
        try:
            check(point.load(), point.value)
        except Exception as error:  # a plugin may fail in any way; it must not take the built-in methods with it
            warnings.warn(f"the method plugin {point.name} = {point.value} was left out: {error}", stacklevel=2)


@functools.lru_cache(maxsize=1)
def _points(path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """The installed entry points; reading them opens a file per distribution, so once per search path."""
    return tuple(entry_points(group=GROUP))


def _is_method(value: type) -> bool:
    return issubclass(value, Method) and "info" in vars(value)


def _module(path: Path) -> ModuleType:
    """Run the file as a module under a name of its own, so that two files of the same name do not meet."""
    path = path.resolve()
    name = f"longshift_plugin_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"cannot import {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up there
    try:
        spec.loader.exec_module(module)
    except LongshiftError:
        del sys.modules[name]
        raise
    except Exception as error:  # the file is the user's: whatever it raises, say where
        del sys.modules[name]
        raise UsageError(f"cannot import {path}: {type(error).__name__}: {error}") from error
    return module

"""Registries, and the plugins that add to them from outside the package.

A plugin is a Python module that registers things when it is imported: methods, setting generators, benchmarks, data
readers, backbones, augmentations, launchers, report tables, columns of the table of runs. It is loaded if it is

- installed, with an entry point in the group `longshift.plugins`;
- a file that the user names: `longshift --plugin FILE.py ...`, or `$LONGSHIFT_PLUGINS` (several files are separated as
  in `$PATH`). The option sets the variable, so that worker processes load the same files.

A file that is only named in a dataset, a sweep, a run or a model is never loaded: it may be someone else's code.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import importlib.util
import inspect
import marshal
import os
import sys
import threading
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping, ValuesView
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, TypeVar

from longshift.errors import LongshiftError, UsageError, unknown_name

GROUP = "longshift.plugins"
VARIABLE = "LONGSHIFT_PLUGINS"
T = TypeVar("T")

_loaded: set[str] = set()  # entry points and files; a broken entry point is reported once
# A thread must not look up an entry while another one is still importing its plugin; a plugin may look up entries.
_loading = threading.RLock()


class Registry(Mapping[str, T]):
    """Things of one kind by name, in the order in which they were added. Looking one up loads the plugins first."""

    def __init__(self, kind: str, command: str = "") -> None:
        self.kind, self._command = kind, command
        self._entries: dict[str, T] = {}

    def add(self, name: str, value: T) -> None:
        """Add an entry; a name belongs to one entry, and adding that one again replaces it."""
        taken = self.spelling(name)
        if taken is not None and (taken != name or _origin(self._entries[taken]) != _origin(value)):
            raise LongshiftError(f"The {self.kind} {taken!r} already exists. Register yours under another name.")
        self._entries[name] = value

    def spelling(self, name: str) -> str | None:
        """The registered spelling of a name given in any case; None if there is no such entry (yet)."""
        return {known.casefold(): known for known in self._entries}.get(name.casefold())

    def peek(self, name: str) -> T | None:
        """The entry if it is registered so far; loads nothing, so that modules can use it while they are imported."""
        return self._entries.get(name)

    def find(self, name: str) -> T:
        """The entry of that name, in any case; a `UsageError` names the close ones."""
        load_plugins()
        found = self.spelling(name)
        if found is None:
            raise UsageError(self.unknown(name))
        return self._entries[found]

    def unknown(self, name: str) -> str:
        """The message for a name that is not registered."""
        message = unknown_name(self.kind, name, self._entries)
        close = "did you mean" in message
        plugin = "" if close else "; if a plugin defines it, name its file: longshift --plugin FILE.py ..."
        return message + (f"; `{self._command}` lists them all" if self._command else "") + plugin

    def __getitem__(self, name: str) -> T:
        load_plugins()
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        load_plugins()
        return iter(tuple(self._entries))

    def __len__(self) -> int:
        load_plugins()
        return len(self._entries)

    def values(self) -> ValuesView[T]:
        """The entries; plugins are looked for once, not once per entry."""
        load_plugins()
        return dict(self._entries).values()


def _origin(value: object) -> object:
    """Where an entry is defined: a module that is imported again, or a cell that is run again, may register it again.

    An entry that wraps functions is defined where they are.
    """
    if isinstance(value, functools.partial):
        return _origin(value.func)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return {name: _origin(part) for name, part in parts.items() if callable(part)} or value
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    return (module, name) if module and name else value


def code_version(function: Callable[..., Any]) -> str:
    """Hash of the file that defines a function, as it may use anything in it, or else of its code.

    Compute it when the function is registered, so that it is about the code that runs, even if the file is edited
    later. A callable without code of its own is new in each process.
    """
    function = _unwrapped(function)
    code = getattr(function, "__code__", None)
    if code is None:
        return uuid.uuid4().hex[:16]
    try:
        source = Path(code.co_filename).read_bytes()
    except OSError:  # typed in a session
        source = marshal.dumps(code)
    return hashlib.sha256(source).hexdigest()[:16]


def plugin_version(function: Callable[..., Any]) -> str:
    """The code version of a function from outside the package; "" for a built-in one."""
    built_in = str(getattr(_unwrapped(function), "__module__", "")).startswith("longshift.")
    return "" if built_in else code_version(function)


def _unwrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself, without decorators and partial applications."""
    function = inspect.unwrap(function)
    while isinstance(function, functools.partial):
        function = inspect.unwrap(function.func)
    return function


def use_plugin(path: Path | str) -> None:
    """Load a plugin file in this process and in the worker processes that it starts.

    Args:
        path: The file. Its code is executed.

    Raises:
        UsageError: If the file does not exist or cannot be imported.
    """
    file = Path(path).expanduser().resolve()
    with _loading:
        _import_file(file)
    files = plugin_files()
    if file not in files:
        os.environ[VARIABLE] = os.pathsep.join(map(str, [*files, file]))


def plugin_files() -> list[Path]:
    """The plugin files that the user named."""
    named = os.environ.get(VARIABLE, "").split(os.pathsep)
    return [Path(name).expanduser().resolve() for name in named if name]


def load_plugins() -> None:
    """Import each plugin once. One that is installed but broken is named in a warning; a broken file is an error."""
    with _loading:
        for file in plugin_files():
            _import_file(file)
        for point in _points(tuple(sys.path)):
            if point.value not in _loaded:
                _loaded.add(point.value)
                try:
                    point.load()
                except Exception as error:  # a plugin may fail in any way; everything else must still work
                    warnings.warn(f"The plugin {point.name} = {point.value} was skipped: {error}", stacklevel=2)


@functools.lru_cache(maxsize=1)
def _points(path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """The installed plugins; this opens a file per distribution, so it is done once per search path."""
    return tuple(entry_points(group=GROUP))


def _import_file(path: Path) -> None:
    """Run a file as a module whose name is derived from its path, so that two files of one name do not collide."""
    name = f"longshift_plugin_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    if name in sys.modules:
        return
    if path.suffix != ".py" or not path.is_file():
        raise UsageError(f"Expected a plugin FILE.py, got {path}" + ("" if path.exists() else ", which does not exist"))
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None  # noqa: PT018 (the suffix is .py)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # before it runs: dataclasses look up their module, and a plugin may use registries
    try:
        spec.loader.exec_module(module)
    except LongshiftError:
        del sys.modules[name]
        raise
    except Exception as error:  # the file is the user's: it may raise anything
        del sys.modules[name]
        raise UsageError(f"Cannot import the plugin {path}: {type(error).__name__}: {error}") from error

"""Names of a package that are imported when they are first used.

A package lists what it exports once, as imports under `if TYPE_CHECKING:`. Type checkers and editors read that list;
so does `lazy_exports` at run time. `import longshift` and `longshift --help` therefore never wait for PyTorch.

The first such block lists the public names: the package's `__all__`. A second block lists names that only
the other packages of longshift use; they may change in any release.
"""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def lazy_exports(package: str) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__all__`, `__getattr__` and `__dir__` for a package.

    Args:
        package: The package's `__name__`. Its `__init__.py` imports what it exports under `if TYPE_CHECKING:`.

    Returns:
        The three module attributes, to be assigned in the `__init__.py`.
    """
    module = sys.modules[package]
    public, shared = exported_names(Path(str(module.__file__)))
    homes = {**shared, **public}

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if homes[name] == package:  # an exported module
            return importlib.import_module(f"{package}.{name}")
        value = getattr(importlib.import_module(homes[name]), name)
        setattr(module, name, value)
        return value

    return sorted(public), load, lambda: sorted({*vars(module), *public})


def exported_names(file: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Return the public names of a package and those that it shares with other packages, with their modules."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    blocks = [_imported(node) for node in tree.body if isinstance(node, ast.If)]
    return blocks[0] if blocks else {}, {name: home for block in blocks[1:] for name, home in block.items()}


def _imported(block: ast.If) -> dict[str, str]:
    """Imported name -> the module that defines it."""
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom) and node.module]
    return {alias.asname or alias.name: str(node.module) for node in imports for alias in node.names}

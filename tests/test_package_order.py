"""The packages follow the way of the data: none imports one further down."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import longshift

ROOT = Path(longshift.__file__).parent
ORDER = (
    "data", "settings", "losses", "metrics", "nn", "methods", "engine", "sweep", "analysis", "report", "experiments",
    "cli",
)  # fmt: skip


def _imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = [node.module]
            if node.module == "longshift":
                names = [f"longshift.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("longshift.")}
    return found


def test_all_packages_are_in_the_order() -> None:
    packages = {path.name for path in ROOT.iterdir() if (path / "__init__.py").exists()}
    assert packages == set(ORDER)


@pytest.mark.parametrize("package", ORDER)
def test_a_package_imports_none_further_down(package: str) -> None:
    below = set(ORDER[ORDER.index(package) + 1 :])
    for path in sorted((ROOT / package).rglob("*.py")):
        wrong = _imports(path) & below
        assert not wrong, f"{path.relative_to(ROOT)} imports {', '.join(sorted(wrong))}"


def test_modules_beside_the_packages_import_none_of_them() -> None:
    for path in ROOT.glob("*.py"):
        if path.name not in ("__init__.py", "__main__.py"):
            assert not _imports(path) & set(ORDER), path.name

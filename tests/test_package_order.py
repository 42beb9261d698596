"""Packages are layered: each imports only those above it, and only the names that those export."""

from __future__ import annotations

import ast
import functools
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import longshift

ROOT = Path(longshift.__file__).parent
ORDER = (
    "data", "settings", "losses", "metrics", "analysis", "nn", "methods", "training", "inference", "sweep",
    "report", "fitting", "paper", "cli",
)  # fmt: skip


def _imports(path: Path) -> Iterator[tuple[str, str]]:
    """(module, name) for every import of this project, and for every attribute of a module that is imported whole."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    whole: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            if node.module == "longshift":
                yield from ((f"longshift.{alias.name}", "") for alias in node.names)
            elif node.module.startswith("longshift."):
                yield from ((node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            whole |= {str(alias.asname): alias.name for alias in node.names if alias.name.startswith("longshift.")}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in whole:
            yield whole[node.value.id], node.attr


def _packages(path: Path) -> set[str]:
    return {module.split(".")[1] for module, _ in _imports(path)} & set(ORDER)


@functools.cache
def _exports(package: str) -> frozenset[str]:
    """What a package exports: the names that its stub imports."""
    stub = ROOT / package / "__init__.pyi"
    if not stub.exists():
        return frozenset()
    nodes = ast.walk(ast.parse(stub.read_text(encoding="utf-8")))
    return frozenset(alias.name for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names)


def test_all_packages_are_in_the_order() -> None:
    packages = {path.name for path in ROOT.iterdir() if (path / "__init__.py").exists()}
    assert packages == set(ORDER)


@pytest.mark.parametrize("package", ORDER)
def test_a_package_imports_only_those_above_it(package: str) -> None:
    below = set(ORDER[ORDER.index(package) + 1 :])
    for path in sorted((ROOT / package).rglob("*.py")):
        wrong = _packages(path) & below
        assert not wrong, f"{path.relative_to(ROOT)} imports {', '.join(sorted(wrong))}"


@pytest.mark.parametrize("package", ORDER)
def test_a_package_imports_only_what_others_export(package: str) -> None:
    for path in sorted((ROOT / package).rglob("*.py")):
        for module, name in _imports(path):
            home = module.split(".")[1]
            if home in ORDER and home != package:
                where = f"{path.relative_to(ROOT)}: {module}"
                assert module == f"longshift.{home}", f"{where} is private to {home}; import from longshift.{home}"
                assert name in _exports(home), f"{where} does not export {name}"


@pytest.mark.parametrize("folder", ["tests", "benchmarks", "results", "examples", "docs_build"])
def test_other_code_imports_names_that_exist(folder: str) -> None:
    """Type checkers accept any name of a package with lazy exports, and a benchmark may not run for months."""
    clone = Path(__file__).parents[1]
    for path in sorted((clone / folder).rglob("*.py")):
        for module, name in _imports(path):
            home = module.removeprefix("longshift.")
            if home in ORDER and name:
                file = ROOT / home / f"{name}.py"
                assert name in _exports(home) or file.exists(), f"{path.relative_to(clone)}: {module} has no {name}"


@pytest.mark.parametrize("package", [name for name in ORDER if name != "cli"])
def test_every_export_exists_and_no_module_hides_it(package: str) -> None:
    module = importlib.import_module(f"longshift.{package}")
    files = {path.stem for path in (ROOT / package).glob("*.py")}
    for name in _exports(package):
        value = getattr(module, name)
        # A submodule of the same name would replace the export as soon as somebody imports it.
        assert name not in files or value.__name__ == f"longshift.{package}.{name}", name


def test_modules_beside_the_packages_import_none_of_them() -> None:
    for path in ROOT.glob("*.py"):
        if path.name not in ("__init__.py", "__main__.py"):
            assert not _packages(path), path.name


def test_modules_of_different_packages_have_different_names() -> None:
    # A method and its loss, or a section and its figure, are one thing at two levels.
    shared = {"boda", "__init__"}
    homes: dict[str, set[str]] = {}
    for package in ORDER:
        for path in (ROOT / package).rglob("*.py"):  # also in subpackages, such as report/figures
            homes.setdefault(path.stem, set()).add(path.parent.relative_to(ROOT).as_posix())
    verbs = {path.stem for path in (ROOT / "cli").glob("*.py")}  # a verb has the name of what it calls
    for name, packages in homes.items():
        if name not in shared | verbs:
            assert len(packages) == 1, f"{name}.py is in {', '.join(sorted(packages))}"

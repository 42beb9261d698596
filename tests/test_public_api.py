"""The public API is what the pages in docs/reference/api list: no more, no less."""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import longshift
from tests.registries import restore_registries

PAGES = Path(__file__).parents[1] / "docs" / "reference" / "api"
PUBLIC = ("losses", "methods", "data", "settings", "metrics")  # packages whose `__all__` is public


def documented(page: str) -> list[str]:
    """The names that a page lists, with their packages."""
    return re.findall(r"^::: ([\w.]+)$", (PAGES / f"{page}.md").read_text(encoding="utf-8"), re.MULTILINE)


ALL = [name for page in sorted(PAGES.glob("*.md")) for name in documented(page.stem)]


def resolve(name: str) -> Any:
    package, _, last = name.rpartition(".")
    module = importlib.import_module(package)
    assert last in module.__all__, f"{package} does not export {last}"
    return getattr(module, last)


@pytest.mark.parametrize("package", PUBLIC)
def test_the_page_of_a_package_lists_what_it_exports(package: str) -> None:
    exported = {f"longshift.{package}.{name}" for name in importlib.import_module(f"longshift.{package}").__all__}
    message = (
        f"docs/reference/api/{package}.md lists the public names of longshift.{package}: add or remove ':::' lines"
    )
    assert set(documented(package)) == exported, message


def test_the_page_of_longshift_lists_what_it_exports() -> None:
    own = {name for name in longshift.__all__ if not inspect.ismodule(getattr(longshift, name))}
    elsewhere = {name for name in own if getattr(longshift, name).__module__.split(".")[1] in PUBLIC}
    assert set(documented("longshift")) == {f"longshift.{name}" for name in own - elsewhere}
    page = (PAGES / "longshift.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\[`\w+`\]\[longshift\.\w+\.(\w+)\]", page)) == elsewhere
    assert {*longshift.__all__} - own == set(PUBLIC)


def test_no_name_is_listed_twice_and_all_exist() -> None:
    assert len(ALL) == len(set(ALL))
    for name in ALL:
        assert resolve(name) is not None


MODULES = sorted({resolve(name).__module__ for name in ALL})


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    restore_registries(monkeypatch)
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    assert doctest.testmod(importlib.import_module(name), optionflags=flags).failed == 0


@pytest.mark.parametrize("name", ALL)
def test_a_public_name_is_documented(name: str) -> None:
    value = resolve(name)
    text = inspect.getdoc(value) or ""
    assert text
    if inspect.isfunction(value):
        signature = inspect.signature(value)
        assert "Args:" in text or not signature.parameters, "no Args section"
        result = signature.return_annotation
        assert "Returns:" in text or result in (None, "None"), "no Returns section"

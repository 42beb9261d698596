"""The public API is what the pages in docs/reference/api list: no more, no less."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import re
from enum import Enum
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


def public(package: str) -> list[str]:
    """The public names of a package: `__all__` of its stub, without what only longshift's own packages use."""
    stub = Path(str(importlib.import_module(package).__file__)).with_suffix(".pyi")
    for node in ast.parse(stub.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign):  # `__all__ = [...]`
            return [str(name) for name in ast.literal_eval(node.value)]
    return list(importlib.import_module(package).__all__)


ALL = [name for page in sorted(PAGES.glob("*.md")) for name in documented(page.stem)]


def resolve(name: str) -> Any:
    package, _, last = name.rpartition(".")
    module = importlib.import_module(package)
    assert last in public(package), f"{package} does not export {last}"
    return getattr(module, last)


@pytest.mark.parametrize("package", PUBLIC)
def test_the_page_of_a_package_lists_what_it_exports(package: str) -> None:
    exported = {f"longshift.{package}.{name}" for name in public(f"longshift.{package}")}
    message = (
        f"docs/reference/api/{package}.md lists the public names of longshift.{package}: add or remove ':::' lines"
    )
    assert set(documented(package)) == exported, message


def test_the_page_of_longshift_lists_what_it_exports() -> None:
    own = {name for name in public("longshift") if not inspect.ismodule(getattr(longshift, name))}
    elsewhere = {name for name in own if getattr(longshift, name).__module__.split(".")[1] in PUBLIC}
    assert set(documented("longshift")) == {f"longshift.{name}" for name in own - elsewhere}
    page = (PAGES / "longshift.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\[`\w+`\]\[longshift\.\w+\.(\w+)\]", page)) == elsewhere
    assert {*public("longshift")} - own == set(PUBLIC)


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


def sections(text: str) -> set[str]:
    """The sections of a Google-style docstring."""
    return set(re.findall(r"^(Args|Attributes|Returns|Yields|Raises|Example):", text, re.MULTILINE))


def described(value: Any) -> set[str]:
    """Parameters that the docstring of a function, or of a class and its bases, or their own text describes."""
    owners = value.__mro__ if inspect.isclass(value) else (value,)
    texts = [inspect.cleandoc(owner.__doc__ or "") for owner in owners]
    blocks = [
        block
        for text in texts
        for block in re.findall(r"^(?:Args|Attributes):\n((?:(?: .*)?\n?)*)", text, re.MULTILINE)
    ]
    named = {name for block in blocks for name in re.findall(r"^ {4}\*{0,2}(\w+):", block, re.MULTILINE)}
    fields = getattr(value, "model_fields", None) or getattr(
        value, "__pydantic_fields__", {}
    )  # the latter: dataclasses
    return named | {name for name, field in fields.items() if field.description}


def parameters(value: Any) -> set[str]:
    """The parameters that a user may pass."""
    if inspect.isclass(value) and (issubclass(value, Enum) or getattr(value, "_is_protocol", False)):
        return set()
    return {name for name in inspect.signature(value).parameters if not name.startswith("_")}


@pytest.mark.parametrize("name", ALL)
def test_a_public_name_is_documented(name: str) -> None:
    value = resolve(name)
    text = inspect.getdoc(value) or ""
    assert text
    assert "Example" in sections(text), "no Example section"
    assert parameters(value) <= described(value), "parameters that the docstring does not describe"
    if inspect.isfunction(value):
        found, source = sections(text), inspect.getsource(value)
        result = inspect.signature(value).return_annotation
        assert found & {"Returns", "Yields"} or result in (None, "None"), "no Returns section"
        assert "Raises" in found or not re.search(r"^    raise ", source, re.MULTILINE), "no Raises section"

"""Each message that docs/guides/troubleshooting.md explains is a string that the code builds."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guides" / "troubleshooting.md").read_text(encoding="utf-8")
HEADINGS = re.findall(r"^### \d+\. (.*)$", PAGE, re.MULTILINE)
MESSAGES = [message for heading in HEADINGS for message in re.findall(r"`([^`]+)`", heading)]
GAP = "…"  # stands for a value, on the page and in the strings of the code
Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def shape(node: ast.expr) -> str:
    """The text of an expression that makes a string, with a gap for each value."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else GAP
    if isinstance(node, ast.JoinedStr):
        return "".join(map(shape, node.values))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return shape(node.left) + shape(node.right)
    if isinstance(node, ast.FormattedValue) and isinstance(node.value, ast.Call):
        return plural(node.value)
    return GAP


def plural(call: ast.Call) -> str:
    """What `counted` and `agree` make of more than one; a gap for other calls."""
    name, words = call.func.id if isinstance(call.func, ast.Name) else "", [shape(word) for word in call.args[1:]]
    if name == "agree":
        return words[1]
    if name == "counted":
        return f"{GAP} {words[1] if len(words) > 1 else words[0] + 's'}"
    return GAP


def strings(tree: ast.Module) -> Iterator[str]:
    """Every string that a module makes; comments and docstrings are not among them."""
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, Documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, (ast.Constant, ast.JoinedStr, ast.BinOp)) and id(node) not in docstrings:
            yield shape(node)


@pytest.fixture(scope="module")
def made() -> list[str]:
    """Every string that the package makes."""
    files = sorted((ROOT / "src").rglob("*.py"))
    return sorted({text for path in files for text in strings(ast.parse(path.read_text(encoding="utf-8")))})


def explained(message: str) -> re.Pattern[str]:
    """What the code's string must contain: the words of the page, with anything in the gaps."""
    return re.compile(".*".join(re.escape(words.strip(" '?")) for words in message.split(GAP)))


@pytest.mark.parametrize("message", MESSAGES)
def test_an_explained_message_is_one_of_the_code(message: str, made: list[str]) -> None:
    pattern = explained(message)
    assert any(pattern.search(text) for text in made), f"no string of the code reads {message!r}"


def test_comments_and_docstrings_do_not_count() -> None:
    module = (
        '"""no dataset at all"""\n# no dataset at 1\ndef f(x):\n    "no dataset here"\n    g(f"lost {x} " + "of 2")\n'
    )
    found = list(strings(ast.parse(module)))
    assert f"lost {GAP} of 2" in found
    numbered = """g(f"{counted(n, 'path')} {agree(n, 'lies', 'lie')} in {counted(k, 'box', 'boxes')} of {h(n)}")"""
    assert f"{GAP} paths lie in {GAP} boxes of {GAP}" in list(strings(ast.parse(numbered)))
    assert not any("dataset" in text for text in found)

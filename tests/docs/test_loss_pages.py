"""Every loss module has a page with paper, formula, shapes and a short example that uses it."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest
from torch import nn

from longshift import losses

PAGES = Path(__file__).parents[2] / "docs" / "reference" / "losses"
MODULES = sorted(
    name
    for name in losses.__all__
    if inspect.isclass(getattr(losses, name)) and issubclass(getattr(losses, name), nn.Module)
)


def test_pages_modules_and_index_are_the_same() -> None:
    assert sorted(path.stem for path in PAGES.glob("*.md") if path.stem != "index") == MODULES
    listed = re.findall(r"\| \[`(\w+)`\]\((\w+)\.md\) \|", (PAGES / "index.md").read_text(encoding="utf-8"))
    assert sorted(name for name, _ in listed) == sorted(page for _, page in listed) == MODULES
    site = (PAGES.parents[2] / "mkdocs.yml").read_text(encoding="utf-8")
    assert re.findall(r"reference/losses/(\w+)\.md", site)[1:] == [name for name, _ in listed]


@pytest.mark.parametrize("name", MODULES)
def test_a_page_has_its_four_parts(name: str) -> None:
    text = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    assert text.startswith(f"# {name}\n")
    assert "**Paper:** " in text
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == ["Formula", "Shapes", "Example"]
    assert text.count("$$") == 2
    (example,) = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert f"{name}(" in example
    assert sum(bool(line) for line in example.splitlines()) <= 6
    # The table names the arguments of `forward`.
    arguments = [a for a in inspect.signature(getattr(losses, name).forward).parameters if a not in ("self", "lam")]
    assert set(arguments) <= set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE))

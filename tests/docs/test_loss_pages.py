"""Every loss module has a page, which the index and the site list."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

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

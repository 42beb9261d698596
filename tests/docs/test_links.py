"""Links between the project's own pages lead somewhere, headings included."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLACES = (ROOT, ROOT / "src" / "longshift")
PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("results/**/*.md"), *ROOT.glob("examples/**/*.md")]
)


def prose(page: Path) -> str:
    """A page without its blocks of code, where `#` is a comment and brackets are no links."""
    return re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)


def anchors(page: Path) -> set[str]:
    """The names that GitHub gives to the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", prose(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def broken(page: Path) -> list[str]:
    found = []
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            found.append(link)
    return found


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_links_lead_somewhere(page: Path) -> None:
    assert broken(page) == []


def test_files_in_the_map_exist() -> None:
    pages = [ROOT / "CONTRIBUTING.md", ROOT / "docs" / "explanation" / "reliability.md"]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    named = re.findall(r"`([\w/]+/[\w.]+\.(?:py|json|j2))", text)
    assert not [name for name in sorted(named) if not any((where / name).exists() for where in PLACES)]

"""Check the built site: `python -m docs_build.check_site [site]`.

MkDocs checks the links in Markdown. This checks the result: every page works without the internet (no script, style,
font or picture from elsewhere), every link and anchor of the HTML leads somewhere, formulas are drawn, and the search
index, also in the form for pages opened as files, holds the pages.
"""

from __future__ import annotations

import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).parents[1]
LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}
SEARCHED = ("tutorials/", "guides/", "reference/", "explanation/")


class PageParts(HTMLParser):
    """The ids, links and loaded files of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect what the check needs."""
        values = {name: value or "" for name, value in attrs}
        self.ids |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag in LOADED and LOADED[tag] in values and values.get("rel") not in ("canonical", "next", "prev"):
            self.loaded.append(values[LOADED[tag]])


def find_problems(site: Path) -> list[str]:
    """Return what is wrong with a built site, one line per problem.

    Args:
        site: The folder that MkDocs wrote.
    """
    pages = {path: PageParts(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    pages = {path: page for path, page in pages.items() if path.name != "404.html"}  # its links are absolute
    problems = [] if pages else [f"{site}: no pages"]
    for path, page in pages.items():
        name = path.relative_to(site).as_posix()
        problems += [f"{name}: loads {url}" for url in page.loaded if _is_remote(url)]
        problems += [f"{name}: {link} leads nowhere" for link in page.links if not _leads_somewhere(link, path, pages)]
        if 'class="arithmatex"' in path.read_text(encoding="utf-8"):
            problems.append(f"{name}: a formula was not drawn")
    for style in sorted(site.rglob("*.css")):
        remote = re.findall(r"(?:url\(|@import )[\"']?(https?:[^\"')]+)", style.read_text(encoding="utf-8"))
        problems += [f"{style.relative_to(site).as_posix()}: loads {url}" for url in remote]
    return problems + _search_problems(site)


def _search_problems(site: Path) -> list[str]:
    file = site / "search" / "search_index.json"
    if not file.exists():
        return ["no search index"]
    places = [entry["location"] for entry in json.loads(file.read_text(encoding="utf-8"))["docs"]]
    problems = [f"the search index has no page of {part}" for part in SEARCHED if not any(part in p for p in places)]
    if not file.with_suffix(".js").exists():
        problems.append("the search does not work for pages opened as files: search_index.js is missing")
    return problems


def _is_remote(url: str) -> bool:
    return url.startswith(("http:", "https:", "//"))


def _leads_somewhere(link: str, page: Path, pages: dict[Path, PageParts]) -> bool:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return True
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page.resolve()
    if target.is_dir():
        target /= "index.html"
    anchor = unquote(parts.fragment)
    if target in pages and anchor and not anchor.startswith("__"):
        return anchor in pages[target].ids
    return target.exists()


def main() -> None:
    """Print the problems; the exit code is 1 if there are any."""
    site = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "site").resolve()
    problems = find_problems(site)
    for problem in problems:
        print(problem)
    if problems:
        raise SystemExit(1)
    print(f"{len(list(site.rglob('*.html')))} pages: no problem found")


if __name__ == "__main__":
    main()

"""Links from pages to files of the repository that are not in docs/: the site gets a page for each of them.

On a code host such a link shows the file. The site must work without one, so a linked source file becomes a page with
its text, a linked folder a page with its README and its files, and the Markdown files of the root become pages.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Mapping
from pathlib import Path

LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"(^```.*?^```)", re.DOTALL | re.MULTILINE)
LANGUAGES = {".py": "python", ".toml": "toml", ".json": "json", ".csv": "text", ".yml": "yaml"}
HIDDEN = "---\nsearch:\n  exclude: true\n---\n"


def site_name(target: str, root: Path) -> str | None:
    """Return the page (relative to docs/) of a file or folder of the repository; None if it gets no page.

    Args:
        target: Path from the root of the repository.
        root: The root of the repository.
    """
    if target == "docs" or target.startswith("docs/"):
        inside = target.removeprefix("docs").removeprefix("/")
        if (root / target).is_dir():
            return posixpath.join(inside, "index.md")
        return inside.replace(".ipynb", ".md")
    if target == "README.md":
        return "index.md"
    if "/" not in target and target.endswith(".md"):
        return f"project/{target.lower().replace('_', '-')}"
    if (root / target).is_dir():
        return f"source/{target}/index.md"
    return f"source/{target}.md" if (root / target).is_file() else None


def adapt_links(text: str, origin: str, page: str, root: Path | None = None) -> str:
    """Return the text of a page with links that work on the site.

    Args:
        text: Markdown.
        origin: Path of the file with this text from the root of the repository, which its links are relative to.
        page: The page on the site, relative to docs/.
        root: The root of the repository.
    """
    where = root or Path(__file__).parents[1]

    def adapted(match: re.Match[str]) -> str:
        anchor = match[1].partition("#")[2]
        target = _target(match[1], origin)
        name = site_name(target, where) if target else None
        if name is None or (origin == f"docs/{page}" and target == f"docs/{name}"):
            return match[0]
        there = posixpath.relpath(name, posixpath.dirname(page) or ".")
        return f"]({there}#{anchor})" if anchor else f"]({there})"

    return "".join(part if part.startswith("```") else LINK.sub(adapted, part) for part in CODE.split(text))


def repository_pages(texts: Mapping[str, str], root: Path) -> dict[str, str]:
    """Return the pages for files of the repository that pages link to, and for those that these link to.

    Args:
        texts: The Markdown of each page of docs/.
        root: The root of the repository.
    """
    waiting = [target for name, text in texts.items() for target in _outside(text, f"docs/{name}")]
    waiting += [path.name for path in root.glob("*.md")]
    made: dict[str, str] = {}
    while waiting:
        target = waiting.pop()
        name = site_name(target, root)
        if name is None or name in made or name == "index.md":
            continue
        origin, text = _page_of(target, root)
        waiting += _outside(text, origin)
        made[name] = adapt_links(text, origin, name, root)
    return made


def _target(link: str, origin: str) -> str | None:
    """The path that a relative link leads to, from the root of the repository."""
    path = link.partition("#")[0]
    if not path or re.match(r"[a-z]+:", link) or path.startswith("/"):
        return None
    return posixpath.normpath(posixpath.join(posixpath.dirname(origin), path))


def _outside(text: str, origin: str) -> list[str]:
    prose = "".join(part for part in CODE.split(text) if not part.startswith("```"))
    targets = [_target(link, origin) for link in LINK.findall(prose)]
    return [target for target in targets if target and not target.startswith((".", "docs/")) and target != "docs"]


def _page_of(target: str, root: Path) -> tuple[str, str]:
    """The file that the links of the page are relative to, and the page's Markdown."""
    path = root / target
    if path.is_dir():
        readme = path / "README.md"
        text = readme.read_text(encoding="utf-8") if readme.exists() else f"# {target}\n"
        return f"{target}/README.md", f"{HIDDEN}{text}\n## Files\n\n{_files(path)}\n"
    if path.suffix == ".md":
        return target, path.read_text(encoding="utf-8")
    if path.suffix not in LANGUAGES:
        return target, f"{HIDDEN}# {path.name}\n\n`{target}` in the repository, {path.stat().st_size} bytes.\n"
    text = path.read_text(encoding="utf-8").rstrip()
    return target, f"{HIDDEN}# {path.name}\n\n`{target}`\n\n```{LANGUAGES.get(path.suffix, 'text')}\n{text}\n```\n"


def _files(folder: Path) -> str:
    """The folder's files: those that can be read as text are links."""
    names = sorted(name for name in os.listdir(folder) if not name.startswith((".", "_")) and name != "README.md")
    lines = []
    for name in names:
        shown = (folder / name).is_dir() or (folder / name).suffix in LANGUAGES
        lines.append(f"- [{name}]({name})" if shown else f"- {name}")
    return "\n".join(lines)

"""Check the built site: `python -m docs_build.check_site [site]`.

MkDocs checks the links in Markdown. This checks the result: every page works without the internet (no script, style,
font or picture from elsewhere), every link and anchor leads somewhere, and formulas are drawn.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).parents[1]
LOADED = re.compile(r"""<(?:script|img|iframe|source)\b[^>]*\ssrc=["']?((?:https?:)?//[^"'\s>]+)""")
STYLES = re.compile(r"""<link\b(?![^>]*rel=["']?(?:canonical|next|prev))[^>]*\shref=["']?((?:https?:)?//[^"'\s>]+)""")
LINK = re.compile(r"""<a\b[^>]*\shref=["']?([^"'\s>]+)""")
ANCHOR = re.compile(r"""\s(?:id|name)=["']?([^"'\s>]+)""")
IN_CSS = re.compile(r"""(?:url\(|@import )["']?(https?:[^"')]+)""")


def find_problems(site: Path) -> list[str]:
    """Return what is wrong with a built site, one line per problem.

    Args:
        site: The folder that MkDocs wrote.
    """
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(site.rglob("*.html"))}
    texts = {path: text for path, text in texts.items() if path.name != "404.html"}  # its links are absolute
    anchors = {path: set(ANCHOR.findall(text)) for path, text in texts.items()}
    problems = [] if texts else [f"{site}: no pages"]
    for path, text in texts.items():
        name = path.relative_to(site).as_posix()
        problems += [f"{name}: loads {url}" for url in LOADED.findall(text) + STYLES.findall(text)]
        links = set(LINK.findall(text))
        problems += [f"{name}: {link} leads nowhere" for link in links if not _leads_somewhere(link, path, anchors)]
        problems += [f"{name}: a formula was not drawn"] * ('class="arithmatex"' in text)
    for style in sorted(site.rglob("*.css")):
        remote = IN_CSS.findall(style.read_text(encoding="utf-8"))
        problems += [f"{style.relative_to(site).as_posix()}: loads {url}" for url in remote]
    return problems


def _leads_somewhere(link: str, page: Path, anchors: dict[Path, set[str]]) -> bool:
    parts = urlsplit(link.replace("&amp;", "&"))
    if parts.scheme or parts.netloc:
        return True
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page.resolve()
    if target.is_dir():
        target /= "index.html"
    anchor = unquote(parts.fragment)
    if target in anchors and anchor and not anchor.startswith("__"):
        return anchor in anchors[target]
    return target.exists()


def main() -> None:
    """Print the problems; the exit code is 1 if there are any."""
    site = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "site").resolve()
    problems = find_problems(site)
    print("\n".join(problems) or f"{len(list(site.rglob('*.html')))} pages: no problem found")
    raise SystemExit(bool(problems))


if __name__ == "__main__":
    main()

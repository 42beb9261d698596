"""Write the methods page and the tables in README.md, docs/ and results/ from the published runs.

    python -m results.docs_tables          # rewrite every table between its markers, and the methods page
    python -m results.docs_tables --check  # name pages with stale tables; exit code 1 if there are any

A page marks a table with `<!-- table: NAME -->` and `<!-- end -->`. Its script is results/tables/NAME.py, with a
function `table` that returns Markdown; `-` in NAME is `_` in the file name.
"""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path

from results.methods_pages import methods_pages
from results.numbers import RESULTS

ROOT = RESULTS.parent
MARKED = re.compile(r"(<!-- table: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def table_names() -> list[str]:
    """The tables that have a script."""
    files = (RESULTS / "tables").glob("[a-z]*.py")
    return sorted(file.stem.replace("_", "-") for file in files)


def make_table(name: str) -> str:
    """The Markdown of a table."""
    return str(import_module(f"results.tables.{name.replace('-', '_')}").table())


def pages() -> list[Path]:
    """Pages that may hold tables."""
    return sorted(path for where in ("*.md", "docs/**/*.md", "results/**/*.md") for path in ROOT.glob(where))


def names(page: str) -> list[str]:
    """The tables that a page marks."""
    return [match[1] for match in MARKED.findall(page)]


def filled(page: str) -> str:
    """The page with every marked table written anew."""
    return MARKED.sub(lambda match: f"{match[1]}{make_table(match[2])}\n{match[3]}", page)


def main() -> None:
    """Rewrite the tables, or name the pages where they are stale."""
    check, stale = "--check" in sys.argv, False
    made = {page: filled(page.read_text(encoding="utf-8")) for page in pages()} | methods_pages()
    for page, text in made.items():
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            stale = True
            print(f"{'stale' if check else 'wrote'}: {page.relative_to(ROOT)}")
            if not check:
                page.write_text(text, encoding="utf-8")
    if check and stale:
        raise SystemExit(1)


if __name__ == "__main__":
    main()

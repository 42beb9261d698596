"""The hooks that mkdocs.yml names: generated pages, links to files of the repository, formulas as drawings."""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from docs_build.cli_page import cli_page
from docs_build.formulas import draw_formulas
from docs_build.rendered_notebooks import rendered_notebooks
from docs_build.repository_links import adapt_links, repository_pages

ROOT = Path(__file__).parents[1]


def on_files(files: Files, /, *, config: MkDocsConfig) -> Files:
    """Add the command line reference, the rendered notebooks and the repository's files that pages link to."""
    generated: dict[str, str | bytes] = {"reference/cli.md": cli_page(), **rendered_notebooks()}
    texts = {file.src_uri: file.content_string for file in files.documentation_pages()}
    texts |= {name: text for name, text in generated.items() if isinstance(text, str)}
    generated |= repository_pages(texts, ROOT)
    for name, content in generated.items():
        files.append(File.generated(config, name, content=content))
    return files


def on_page_markdown(markdown: str, /, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links that leave docs/ to the pages made for their targets."""
    return adapt_links(markdown, f"docs/{page.file.src_uri}", page.file.src_uri)


def on_page_content(html: str, /, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Replace formulas by drawings, which need no script, and keep a number and its error on one line."""
    return draw_formulas(re.sub(r"(?<=\d) ± (?=\d)", "\u00a0±\u00a0", html))

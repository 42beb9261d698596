"""The parts that build the documentation site, on small inputs; `make docs` builds the whole site."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from docs_build import hooks
from longshift.cli.main import VERBS, app

ROOT = Path(__file__).parents[2]
CONFIG, FILES = MkDocsConfig(), Files([])
PAGE = Page("a", File("guides/a.md", "docs", "site", use_directory_urls=False), CONFIG)
NOTEBOOKS = sorted((ROOT / "docs" / "tutorials").glob("*.ipynb"))


def test_formulas_become_mathml() -> None:
    html = '<p>a <span class="arithmatex">\\(x &lt; y\\)</span></p><div class="arithmatex">\\[\\frac{1}{K}\\]</div>'
    found = hooks.on_page_content(html, page=PAGE, config=CONFIG, files=FILES)
    assert "arithmatex" not in found
    assert found.count("<math") == found.count("</math>") == 2
    assert 'display="block"' in found
    assert "<mfrac>" in found


def test_links_to_the_repository_get_pages() -> None:
    text = "[r](../../results) [x](../../none.py) [p](../../pyproject.toml#a)\n```\n[y](../../Makefile)\n```\n[b](#b)"
    found = hooks.on_page_markdown(text, page=PAGE, config=CONFIG, files=FILES)
    assert found == (
        "[r](../source/results/index.md) [x](../../none.py) [p](../source/pyproject.toml.md#a)\n"
        "```\n[y](../../Makefile)\n```\n[b](#b)"
    )
    assert hooks.targets(text, "docs/guides/a.md") == ["results", "none.py", "pyproject.toml"]
    assert hooks.page_name("CODE_OF_CONDUCT.md") == "project/code-of-conduct.md"
    assert hooks.page_name("docs/tutorials/sweep.ipynb") == "tutorials/sweep.md"
    assert "runs.parquet" not in hooks.file_page(ROOT / "pyproject.toml")
    assert "- docs_tables.py\n" in hooks.file_page(ROOT / "results")


def test_the_page_of_commands_has_every_verb_and_option() -> None:
    page = hooks.commands()
    program: Any = typer.main.get_command(app)
    for verb in VERBS:
        program.load(verb)
        for words, command in _commands([verb], program.commands[verb]):
            title = f"longshift {' '.join(words)}"
            section = re.split(r"\n##+ ", page.split(f"# `{title}`\n", 1)[1], maxsplit=1)[0]
            for option in (name for parameter in command.params for name in parameter.opts if name.startswith("--")):
                assert option in section or option == "--help", f"{title} {option}"


def _commands(words: list[str], command: Any) -> list[tuple[list[str], Any]]:
    parts = getattr(command, "commands", {})
    return [(words, command), *(one for name, part in parts.items() for one in _commands([*words, name], part))]


def test_every_page_is_in_the_navigation_once() -> None:
    listed = re.findall(r"([\w./-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(listed) == len(set(listed)), "a page is in the navigation twice"
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    pages |= {f"tutorials/{notebook.stem}.md" for notebook in NOTEBOOKS}
    assert pages - set(listed) == set(), "add them to `nav` in mkdocs.yml"


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_stored_without_outputs(notebook: Path) -> None:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert code
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    assert "".join(cells[0]["source"]).startswith("# ")

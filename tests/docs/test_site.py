"""The parts that build the documentation site, on small inputs; `make docs` builds and checks the whole site."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import typer

from docs_build.check_site import find_problems
from docs_build.cli_page import cli_page
from docs_build.example_sections import rename_examples
from docs_build.formulas import draw_formulas
from docs_build.rendered_notebooks import render
from docs_build.repository_links import adapt_links, repository_pages
from longshift.cli.main import VERBS, app

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "docs" / "tutorials").glob("*.ipynb"))


def test_examples_are_shown_as_code() -> None:
    text = "Do it.\n\nExample:\n    >>> f()  # Example: none\n"
    assert rename_examples(text) == text.replace("\nExample:", "\nExamples:")


def test_formulas_become_drawings() -> None:
    html = '<p>a <span class="arithmatex">\\(x &lt; y\\)</span></p><div class="arithmatex">\\[\\frac{1}{K}\\]</div>'
    found = draw_formulas(html)
    assert "arithmatex" not in found
    assert found.count("<svg") == found.count("</svg>") == 2
    assert 'aria-label="x &lt; y"' in found
    assert re.search(r'<div class="formula"><svg[^>]*aria-label="\\frac\{1\}\{K\}"[^>]*>.*<path ', found)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with a page, a source file, a folder of results and the Markdown files of the root."""
    files = {
        "docs/guides/a.md": "",
        "src/x.py": "print(1)\n",
        "CONTRIBUTING.md": "# C\n[a](docs/guides/a.md#b) [x](src/x.py)",
        "CHANGELOG.md": "# Log\n",
        "results/one/README.md": "# One\n[a](../../docs/guides/a.md)\n",
        "results/one/sweep.toml": "steps = 1\n",
        "results/one/runs.parquet": "",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_links_to_the_repository_get_pages(repository: Path) -> None:
    text = "[one](../../results/one) [x](../../src/x.py)\n```\n[x](../../src/x.py)\n```\n[y](https://example.org/y.py)"
    assert adapt_links(text, "docs/guides/a.md", "guides/a.md", repository) == (
        "[one](../source/results/one/index.md) [x](../source/src/x.py.md)\n"
        "```\n[x](../../src/x.py)\n```\n[y](https://example.org/y.py)"
    )
    made = repository_pages({"guides/a.md": text}, repository)
    assert set(made) == {
        "project/contributing.md", "project/changelog.md", "source/src/x.py.md", "source/results/one/index.md",
        "source/results/one/sweep.toml.md",
    }  # fmt: skip
    assert made["project/contributing.md"] == "# C\n[a](../guides/a.md#b) [x](../source/src/x.py.md)"
    assert "```python\nprint(1)\n```" in made["source/src/x.py.md"]
    assert "[a](../../../guides/a.md)" in made["source/results/one/index.md"]
    assert "- runs.parquet\n- [sweep.toml](sweep.toml.md)" in made["source/results/one/index.md"]


def test_links_inside_the_site_stay(repository: Path) -> None:
    text = "[b](#b) [own](a.md) [note](../tutorials/t.ipynb)"
    assert adapt_links(text, "docs/guides/a.md", "guides/a.md", repository) == text.replace(".ipynb", ".md")


def test_the_page_of_commands_has_every_verb_and_option() -> None:
    page = cli_page()
    program: Any = typer.main.get_command(app)
    for verb in VERBS:
        program.load(verb)
        for words, command in _commands([verb], program.commands[verb]):
            title = f"longshift {' '.join(words)}"
            section = re.split(r"\n##+ ", page.split(f"# {title}\n", 1)[1], maxsplit=1)[0]
            for option in (name for parameter in command.params for name in parameter.opts if name.startswith("--")):
                assert option in section or option == "--help", f"{title} {option}"


def _commands(words: list[str], command: Any) -> list[tuple[list[str], Any]]:
    parts = getattr(command, "commands", {})
    return [(words, command), *(one for name, part in parts.items() for one in _commands([*words, name], part))]


def make_site(folder: Path, body: str) -> Path:
    """A small site that passes."""
    entries = [{"location": f"{part}/a.html"} for part in ("tutorials", "guides", "reference", "explanation")]
    (folder / "search").mkdir(parents=True)
    (folder / "search" / "search_index.json").write_text(json.dumps({"docs": entries}))
    (folder / "search" / "search_index.js").write_text("")
    (folder / "site.css").write_text("a { background: url(x.png) }")
    (folder / "b.html").write_text('<h2 id="here">b</h2>')
    (folder / "index.html").write_text(f'<link rel="stylesheet" href="site.css"><a href="b.html#here">b</a>{body}')
    return folder


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("", None),
        ('<a href="https://example.org">x</a>', None),
        ('<script src="https://unpkg.com/x.js"></script>', "index.html: loads https://unpkg.com/x.js"),
        ('<img src="//cdn.example.org/x.png">', "index.html: loads //cdn.example.org/x.png"),
        ('<a href="c.html">c</a>', "index.html: c.html leads nowhere"),
        ('<a href="b.html#gone">b</a>', "index.html: b.html#gone leads nowhere"),
        ('<span class="arithmatex">x</span>', "index.html: a formula was not drawn"),
    ],
)
def test_problems_of_a_site_are_found(tmp_path: Path, body: str, problem: str | None) -> None:
    assert find_problems(make_site(tmp_path.resolve() / "site", body)) == ([problem] if problem else [])


def test_fonts_from_elsewhere_and_a_missing_search_are_found(tmp_path: Path) -> None:
    site = make_site(tmp_path.resolve() / "site", "")
    (site / "site.css").write_text('@import "https://fonts.example.org/x";')
    (site / "search" / "search_index.js").unlink()
    assert find_problems(site) == [
        "site.css: loads https://fonts.example.org/x",
        "the search does not work for pages opened as files: search_index.js is missing",
    ]


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


def test_a_notebook_becomes_a_page_with_outputs_and_pictures() -> None:
    outputs = [
        {"output_type": "execute_result", "data": {"text/plain": ["2"]}},
        {"output_type": "display_data", "data": {"image/png": "aGk="}},
        {"output_type": "stream", "name": "stdout", "text": ["\x1b[1mdone\x1b[0m \n"]},
        {"output_type": "stream", "name": "stderr", "text": ["10%"]},
    ]
    cells: list[dict[str, Any]] = [
        {"cell_type": "markdown", "source": ["# Title\n", "\n", "Text."]},
        {"cell_type": "code", "source": ["1 + 1"], "outputs": outputs},
        {"cell_type": "code", "source": ["!longshift methods"], "outputs": []},
    ]
    made = render(json.dumps({"cells": cells}), "first")
    page = made.pop("tutorials/first.md")
    assert isinstance(page, str)
    assert page.startswith("# Title\n\n[Download this notebook](first.ipynb)")
    for part in ("Text.", "```python\n1 + 1\n```", "2\n```", "\ndone\n```", "```sh\nlongshift methods\n```"):
        assert part in page
    assert "10%" not in page
    assert made == {"tutorials/first_files/0.png": b"hi"}
    assert "](first_files/0.png)" in page

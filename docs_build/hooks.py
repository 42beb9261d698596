"""The hooks that mkdocs.yml names: generated pages, links to files of the repository, formulas as MathML."""

from __future__ import annotations

import html as escapes
import posixpath
import re
from pathlib import Path
from typing import Any

import typer
from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from typer.cli import get_docs_for_click

from longshift.cli.main import VERBS, app

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|/)([^)\s#]+)")  # a relative link, without its anchor
CODE = re.compile(r"(^```.*?^```)", re.DOTALL | re.MULTILINE)
LANGUAGES = {".py": "python", ".toml": "toml", ".json": "json", ".csv": "text", ".yml": "yaml"}
# What the Markdown extension `pymdownx.arithmatex` writes for $...$ and $$...$$.
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)
NOTE = """Verbs that print a table also print JSON with `--json`. Exit codes: 0 success, 1 bad data or a failed job,
2 wrong usage, 130 interrupted (Ctrl-C saves what was done; the same command resumes)."""
origins: dict[str, str] = {}  # generated page -> the file of the repository to which its links are relative


def on_files(files: Files, /, *, config: MkDocsConfig) -> Files:
    """Add the command line reference, the executed tutorials and the repository's files that pages link to."""
    from docs_build.tutorials import tutorials

    generated: dict[str, str | bytes] = {"reference/cli.md": commands(), **tutorials()}
    texts = {f"docs/{file.src_uri}": file.content_string for file in files.documentation_pages()}
    texts |= {f"docs/{name}": text for name, text in generated.items() if isinstance(text, str)}
    waiting = [path.name for path in ROOT.glob("*.md")]
    waiting += [target for origin, text in texts.items() for target in targets(text, origin)]
    while waiting:
        target = waiting.pop()
        name = page_name(target)
        if name is None or name in generated or name == "index.md" or target.startswith("docs"):
            continue
        origins[name] = f"{target}/README.md" if (ROOT / target).is_dir() else target
        generated[name] = text = file_page(ROOT / target)
        waiting += targets(text, origins[name])
    for name, content in generated.items():
        files.append(File.generated(config, name, content=content))
    return files


def on_page_markdown(markdown: str, /, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links to files of the repository to their pages."""
    uri = page.file.src_uri
    origin = origins.get(uri, f"docs/{uri}")

    def adapted(match: re.Match[str]) -> str:
        name = page_name(_target(match[1], origin))
        return posixpath.relpath(name, posixpath.dirname(uri) or ".") if name else match[1]

    return "".join(part if part.startswith("```") else LINK.sub(adapted, part) for part in CODE.split(markdown))


def on_page_content(html: str, /, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Write formulas as MathML, which needs no script, and keep errors and intervals on one line."""
    html = re.sub(r"\d ± \d|\([+-]?[\d.]+ to [+-]?[\d.]+\)", lambda match: match[0].replace(" ", "\u00a0"), html)
    return FORMULA.sub(_mathml, html)


def _mathml(match: re.Match[str]) -> str:
    latex = escapes.unescape(match[2]).strip().replace(r"\arg\max", r"\operatorname{argmax}")
    return convert(latex, display="block" if match[1] == "div" else "inline")


def commands() -> str:
    """The page of the command line, with every verb."""
    program: Any = typer.main.get_command(app)
    for verb in VERBS:
        program.load(verb)
    context = program.context_class(program, info_name="longshift")
    page = get_docs_for_click(obj=program, ctx=context, name="longshift", title="Command line")
    return page.replace("**Usage**:", f"{NOTE}\n\n**Usage**:", 1)


def page_name(target: str) -> str | None:
    """The page (relative to docs/) of a file or folder of the repository; None if it has none."""
    path = ROOT / target
    if target.startswith("docs"):
        inside = target.removeprefix("docs").removeprefix("/")
        return posixpath.join(inside, "index.md") if path.is_dir() else inside.replace(".ipynb", ".md")
    if target == "README.md":
        return "index.md"
    if "/" not in target and target.endswith(".md"):
        return f"project/{target.lower().replace('_', '-')}"
    if path.is_dir():
        return f"source/{target}/index.md"
    return f"source/{target}.md" if path.is_file() else None


def targets(text: str, origin: str) -> list[str]:
    """The files of the repository that a page links to."""
    prose = "".join(part for part in CODE.split(text) if not part.startswith("```"))
    return [target for link in LINK.findall(prose) if not (target := _target(link, origin)).startswith(".")]


def _target(link: str, origin: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(origin), link))


def file_page(path: Path) -> str:
    """The page of a file or folder that is not in docs/."""
    if path.suffix == ".md":
        return path.read_text(encoding="utf-8")
    hidden = "---\nsearch:\n  exclude: true\n---\n"
    if path.is_dir():
        readme = path / "README.md"
        text = readme.read_text(encoding="utf-8") if readme.exists() else f"# {path.name}\n"
        names = sorted(file.name for file in path.iterdir() if not file.name.startswith((".", "_")))
        return f"{hidden}{text}\n## Files\n\n" + "".join(f"- {name}\n" for name in names)
    known = path.suffix in LANGUAGES
    text = path.read_text(encoding="utf-8").rstrip() if known else f"{path.stat().st_size} bytes"
    return f"{hidden}# {path.name}\n\n```{LANGUAGES.get(path.suffix, 'text')}\n{text}\n```\n"

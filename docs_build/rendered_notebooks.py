"""The executed tutorials as pages: text, code and outputs, with a link to the notebook."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

from docs_build.notebooks import EXECUTED, SOURCE

ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def rendered_notebooks() -> dict[str, str | bytes]:
    """Return the page of each notebook and its pictures, by path in docs/.

    Raises:
        FileNotFoundError: A notebook has not been executed.
    """
    made: dict[str, str | bytes] = {}
    for notebook in sorted(SOURCE.glob("*.ipynb")):
        executed = EXECUTED / notebook.name
        if not executed.exists():
            message = f"Expected the executed notebook {executed}. Run: python -m docs_build.notebooks"
            raise FileNotFoundError(message)
        made |= render(executed.read_text(encoding="utf-8"), notebook.stem)
    return made


def render(notebook: str, name: str) -> dict[str, str | bytes]:
    """Return the Markdown of an executed notebook and its pictures.

    Args:
        notebook: The JSON text of the notebook.
        name: The name of the page in tutorials/, without suffix.
    """
    parts: list[str] = []
    pictures: dict[str, str | bytes] = {}
    for cell in json.loads(notebook)["cells"]:
        source = _text(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```" if not source.startswith("!") else f"```sh\n{_commands(source)}\n```")
        for output in _joined(cell["outputs"]):
            data = output.get("data", {})
            if "image/png" in data:
                picture = f"{name}_files/{len(pictures)}.png"
                pictures[f"tutorials/{picture}"] = base64.b64decode(_text(data["image/png"]))
                parts.append(f"![Output of the code above]({picture})")
            elif shown := _shown(output):
                parts.append(shown)
    title, *rest = parts[0].splitlines()
    link = f'[Download this notebook]({name}.ipynb){{: download="" }}. Its outputs were made when this site was built.'
    page = "\n\n".join([title, link, "\n".join(rest).strip(), *parts[1:]]) + "\n"
    return {f"tutorials/{name}.md": page, **pictures}


def _joined(outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The outputs of a cell without progress bars and warnings; what was printed in several pieces is one output."""
    joined: list[dict[str, Any]] = []
    for output in outputs:
        if output["output_type"] != "stream" or output["name"] == "stdout":
            if joined and output["output_type"] == joined[-1]["output_type"] == "stream":
                joined[-1] = {**joined[-1], "text": _text(joined[-1]["text"]) + _text(output["text"])}
            else:
                joined.append(output)
    return joined


def _shown(output: dict[str, Any]) -> str:
    """An output as HTML or as a block of text."""
    if output["output_type"] == "stream":
        return _block(_text(output["text"]))
    data = output.get("data", {})
    if "text/html" in data:
        return f'<div class="output" markdown="0">{_text(data["text/html"])}</div>'
    return _block(_text(data["text/plain"])) if "text/plain" in data else ""


def _block(text: str) -> str:
    text = "\n".join(line.rstrip() for line in ESCAPES.sub("", text).strip("\n").splitlines())
    return f"```text {{ .output }}\n{text}\n```" if text.strip() else ""


def _commands(source: str) -> str:
    """The command lines of a cell, without the mark that sends them to a shell."""
    return "\n".join(line.removeprefix("!") for line in source.splitlines())


def _text(lines: str | list[str]) -> str:
    """The notebook format stores a text as one string or as a list of lines."""
    return lines if isinstance(lines, str) else "".join(lines)

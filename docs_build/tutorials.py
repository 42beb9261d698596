"""The tutorials: notebooks, stored without outputs, executed into build/notebooks and shown as pages by nbconvert."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat

ROOT = Path(__file__).parents[1]
EXECUTED = ROOT / "build" / "notebooks"
ONLY_ERRORS = ["--IPKernelApp.log_level=40"]  # not a warning about the ports of every kernel
LINK = "[Download this notebook]({}). Its outputs were made when this site was built."


def tutorials() -> dict[str, str | bytes]:
    """The page of each notebook and its pictures, by path in docs/. Notebooks that were executed before are not again.

    Raises:
        CellExecutionError: A cell failed; the message shows the cell and its traceback.
    """
    from nbconvert import MarkdownExporter

    made: dict[str, str | bytes] = {}
    for file in sorted((ROOT / "docs" / "tutorials").glob("*.ipynb")):
        resources = {"output_files_dir": f"{file.stem}_files"}
        page, found = MarkdownExporter().from_notebook_node(executed(file), resources)
        page = re.sub(r"```python\n((?:!.*\n)+)```", lambda match: f"```sh\n{match[1].replace('!', '')}```", page)
        title, _, rest = page.strip().partition("\n")
        made[f"tutorials/{file.stem}.md"] = f"{title}\n\n{LINK.format(file.name)}\n{rest}\n"
        made |= {f"tutorials/{name}": picture for name, picture in found["outputs"].items()}
    return made


def executed(file: Path) -> Any:
    """The notebook with its outputs, without progress bars and warnings. It runs in an empty folder."""
    from nbclient import NotebookClient
    from nbconvert.filters import strip_ansi

    out = EXECUTED / file.name
    if out.exists():
        return nbformat.read(out, as_version=4)
    # Commands in cells find the `longshift` next to this Python, print plain lines and use one thread.
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    os.environ |= {"COLUMNS": "110", "NO_COLOR": "1", "OMP_NUM_THREADS": "1", "TERM": "dumb"}
    notebook = nbformat.read(file, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(
            notebook, timeout=600, resources={"metadata": {"path": folder}}, extra_arguments=ONLY_ERRORS
        ).execute()
    for cell in notebook.cells:
        if cell["cell_type"] == "code":
            cell["outputs"] = [each for each in cell["outputs"] if each.get("name") != "stderr"]
        for output in cell.get("outputs", ()):
            if output["output_type"] == "stream":
                output["text"] = strip_ansi(output["text"])
    EXECUTED.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, out)
    return notebook

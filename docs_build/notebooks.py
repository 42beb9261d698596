"""Run the tutorials: `python -m docs_build.notebooks` executes docs/tutorials/*.ipynb into build/notebooks/.

The notebooks in docs/ are stored without outputs. Each runs in an empty folder, as it would for a reader.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1]
ONLY_ERRORS = ["--IPKernelApp.log_level=40"]  # not a warning about the ports of every kernel
SOURCE, EXECUTED = ROOT / "docs" / "tutorials", ROOT / "build" / "notebooks"


def execute(notebook: Path, out: Path) -> float:
    """Run a notebook and write it with its outputs.

    Args:
        notebook: The notebook without outputs.
        out: The file to write.

    Returns:
        The elapsed seconds.

    Raises:
        CellExecutionError: A cell failed; the message shows the cell and its traceback.
    """
    start = time.perf_counter()
    content = nbformat.read(notebook, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(
            content, timeout=600, resources={"metadata": {"path": folder}}, extra_arguments=ONLY_ERRORS
        ).execute()
    out.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(content, out)
    return time.perf_counter() - start


def set_environment() -> None:
    """Commands in cells find the `longshift` next to this Python, print plain lines and use one thread."""
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    os.environ |= {"COLUMNS": "110", "NO_COLOR": "1", "OMP_NUM_THREADS": "1", "TERM": "dumb"}


def main() -> None:
    """Execute all notebooks, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="names without .ipynb; default: all")
    parser.add_argument("--missing", action="store_true", help="skip notebooks that were executed before")
    given = parser.parse_args()
    set_environment()
    for notebook in sorted(SOURCE.glob("*.ipynb")):
        out = EXECUTED / notebook.name
        if (given.names and notebook.stem not in given.names) or (given.missing and out.exists()):
            continue
        print(f"{notebook.stem}: {execute(notebook, out):.1f} s", flush=True)


if __name__ == "__main__":
    main()

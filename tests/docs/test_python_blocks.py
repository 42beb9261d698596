"""The Python on the pages runs as it stands, in a folder that holds the files a page speaks of."""

from __future__ import annotations

import re
import shutil
import sys
import types
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

import longshift
from tests.data.trees import make_tree, zip_tree
from tests.faults.tools import tiny_sites
from tests.registries import restore_registries
from tests.report.folders import write_runs

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


def blocks(page: Path) -> str:
    """All Python of a page: later blocks use names of earlier ones."""
    return "\n".join(BLOCK.findall(page.read_text(encoding="utf-8")))


PAGES = [
    page.relative_to(ROOT).as_posix()
    for page in sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md")])
    if blocks(page) and not page.name.startswith("extend")  # tests/docs/test_extend.py runs it as plugins
]


def data_files(folder: Path, run: Path) -> None:
    zip_tree(make_tree(folder / "tree"), folder / "PACS.zip")


def fit_files(folder: Path, run: Path) -> None:
    shutil.copytree(tiny_sites(folder / "hospitals") / "north", folder / "new_site")


def sweep_files(folder: Path, run: Path) -> None:
    write_runs(folder / "digits-sweep", ("erm", "ndcl"), trials=1)


def export_files(folder: Path, run: Path) -> None:
    Image.new("RGB", (40, 30)).save(folder / "new.jpg")
    shutil.copytree(run, folder / "fits" / "hospitals")
    longshift.export(run, "onnx", folder / "model.onnx")
    longshift.export(run, "torch", folder / "model.pt2")


def table_files(folder: Path, run: Path) -> None:
    (folder / "results").symlink_to(ROOT / "results")


FILES: dict[str, Callable[[Path, Path], None]] = {
    "docs/reference/data.md": data_files,
    "docs/guides/own-data.md": fit_files,
    "docs/guides/sweeps.md": sweep_files,
    "docs/guides/export.md": export_files,
    "docs/reference/run-table.md": table_files,
}


SLOW_PAGES = {f"docs/guides/{name}.md" for name in ("export", "own-data", "scikit-learn", "training")}


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.slow) if page in SLOW_PAGES else page for page in PAGES],
)
def test_the_python_of_a_page_runs(
    page: str, digits_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if page in FILES:
        FILES[page](tmp_path, digits_run)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LONGSHIFT_CACHE", str(tmp_path / "cache"))
    restore_registries(monkeypatch)  # a page may register a column or a table
    module = types.ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)  # dataclasses look their module up
    code = blocks(ROOT / page).replace("minutes=10", "steps=4")
    exec(compile(code, page, "exec", dont_inherit=True), module.__dict__)
